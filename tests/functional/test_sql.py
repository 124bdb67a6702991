"""Tests of muniment sql: permitted and refused queries, and every query of docs/sql.md."""
from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import tempfile
from typing import Any

from support import BUILD, ROOT, Daemon, DaemonCase, main, wait_until

IMPORTS = ROOT / "tests" / "golden" / "imports"
GOLDEN = ROOT / "tests" / "golden" / "sql"
DOCUMENT = ROOT / "docs" / "sql.md"


def run_sql(daemon: Daemon, *words: Any, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdin": subprocess.DEVNULL} | options if "input" not in options else options
    done = subprocess.run([BUILD / "muniment", "--data", daemon.data, "sql", *map(str, words)], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == code, (done.returncode, done.stdout[-500:], done.stderr)
    return done


def import_examples(daemon: Daemon) -> None:
    for name, file in (("openhands", "openhands.json"), ("tau-bench", "tau-bench.json"), ("claude-code", "claude-code.jsonl")):
        subprocess.run([BUILD / "muniment", "--data", daemon.data, "import", "--format", name, IMPORTS / file], check=True, capture_output=True)


class SqlCase(DaemonCase):
    def setUp(self) -> None:
        super().setUp()
        self.followed()

    def rows(self, query: str, *words: Any) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run_sql(self.daemon, "--json", *words, "-c", query).stdout.splitlines()]

    def refusal(self, *words: Any, code: int = 1, **options: Any) -> str:
        return run_sql(self.daemon, *words, code=code, **options).stderr


class Artifacts(SqlCase):
    """The name and the columns of the artifact table are an interface."""

    shared = True

    COLUMNS = ["artifact_id", "run_id", "step_id", "path", "hash", "mime_type", "size_bytes", "created_at", "metadata"]

    def test_everybody_who_may_read_them_reads_them(self) -> None:
        stored = self.client.put(self.run_id, b"the evidence", mime_type="text/plain")
        query = f"SELECT * FROM artifacts WHERE artifact_id = '{stored['artifact_id']}'"
        self.assertEqual([list(row) for row in self.rows(query)], [self.COLUMNS])
        for role in ("owner", "auditor", "reporter"):
            with self.subTest(role=role):
                rows = self.daemon.sql(f"SET ROLE muniment_{role}; {query}")
                self.assertEqual([(row[1], row[4], row[5], row[6]) for row in rows], [(self.run_id, stored["hash"], "text/plain", "12")])
        names = self.daemon.sql("SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'artifacts' ORDER BY ordinal_position")
        self.assertEqual([name for name, in names], self.COLUMNS)

    def test_a_table_that_was_never_counted_is_not_said_to_be_empty(self) -> None:
        rows = "SELECT row_count FROM report.storage_report WHERE what = 'table' AND name = 'run'"
        self.assertNotEqual(self.rows(rows), [{"row_count": 0}], "this run is in it")
        self.daemon.sql("ANALYZE run")
        self.assertGreater(self.rows(rows)[0]["row_count"], 0)

    def test_a_reporter_reads_the_runs_that_it_is_shown(self) -> None:
        self.client.put(self.run_id, b"one", mime_type="text/plain")
        other = self.new_run("other")
        self.client.put(other, b"two", mime_type="text/plain")
        rows = self.daemon.sql(f"SET ROLE muniment_reporter; SET muniment.runs = '{other}'; SELECT DISTINCT run_id FROM artifacts")
        self.assertEqual(rows, [[other]])


class Forms(SqlCase):
    shared = True

    # Every kind of value: text that must be quoted, numbers that JSON cannot represent, control characters for
    # terminals.
    EVERYTHING = ("SELECT * FROM (VALUES (1, 2.50, 'plain', true, '{\"a\": [1, null]}'::jsonb, timestamptz '2026-01-02 03:04:05.678901Z'), "
                  "(-9223372036854775808, 'NaN', E'a \"quote\", a comma\\nand a line', false, 'null', 'infinity'), "
                  "(NULL, 1e30, '', NULL, NULL, NULL), (4, 0.1, E'\\x1b[31mred\\u202e', true, '\"\\u001b\"', NULL)) "
                  "AS every(number, decimal, text, truth, document, at)")

    def golden(self, name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("MUNIMENT_ACCEPT") == "1":
            path.write_bytes(text.encode())
        self.assertEqual(text.encode(), path.read_bytes(), name)

    def output(self, *words: str) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "sql", *words, "-c", self.EVERYTHING], capture_output=True, check=True)
        return done.stdout.decode()   # keeps CRLF

    def test_a_table(self) -> None:
        self.golden("table.txt", self.output())

    def test_csv(self) -> None:
        self.golden("rows.csv", self.output("--csv"))

    def test_json_lines(self) -> None:
        text = self.output("--json")
        self.golden("rows.jsonl", text)
        self.assertEqual([json.loads(line)["number"] for line in text.splitlines()], [1, -(2 ** 63), None, 4])

    def test_names_that_are_equal_stay_apart(self) -> None:
        self.assertEqual(self.rows("SELECT 1 AS a, 2 AS a"), [{"a": 1, "a_2": 2}])

    def test_without_rows_there_is_still_a_heading(self) -> None:
        query = "SELECT run_id FROM report.run_report WHERE false"
        self.assertEqual(run_sql(self.daemon, "-c", query).stdout, "run_id\n")
        self.assertEqual(run_sql(self.daemon, "--csv", "-c", query).stdout, "run_id\n")
        self.assertEqual(self.rows(query), [])

    def test_a_query_comes_from_a_file_or_standard_input(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write("-- a comment\nSELECT 7 AS n;\n")
            file.flush()
            for words, options in ((["-f", file.name], {}), (["-f", "-"], {"input": "SELECT 7 AS n"}), ([], {"input": "SELECT 7 AS n;"})):
                self.assertEqual(run_sql(self.daemon, "--csv", *words, **options).stdout, "n\n7\n", words)

    def test_more_rows_than_are_measured(self) -> None:
        lines = run_sql(self.daemon, "-c", "SELECT n, repeat('x', CASE n WHEN 2000 THEN 90 ELSE 3 END) AS x FROM generate_series(1, 2000) n").stdout.splitlines()
        self.assertEqual(len(lines), 2001)
        self.assertEqual((lines[0], lines[1], lines[1000], lines[1001]), ("   n  x", "   1  xxx", "1000  xxx", "1001  xxx"))
        self.assertEqual(lines[2000], "2000  " + "x" * 79 + "…")

    def test_a_large_result_takes_no_memory(self) -> None:
        def peak(rows: int) -> int:
            with subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "sql", "--csv", "-c",
                                   f"SELECT n, repeat('x', 200) FROM generate_series(1, {rows}) n"], stdout=subprocess.PIPE) as process:
                assert process.stdout
                size = sum(len(chunk) for chunk in iter(lambda: process.stdout.read(1 << 20), b""))   # type: ignore[union-attr]
                self.assertGreater(size, rows * 200)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, 0)
                return usage.ru_maxrss
        self.assertLess(peak(200_000), peak(1_000) + 8 * 1024)   # 40 MB passed through


class RightAfterAWrite(SqlCase):
    """The views follow the log: a query waits for everything that was acknowledged before it."""

    def test_what_was_appended_a_moment_ago_is_seen(self) -> None:
        for n in range(20):
            run = self.call("run.start", agent={"name": "a"})["run_id"]
            self.call("event.append", run_id=run, events=[{"type": "tool.called", "body": {"call_id": f"c{n}", "name": "t", "kind": "function"}}])
            self.assertEqual(self.rows(f"SELECT tool_calls, events FROM run_report WHERE run_id = '{run}'"), [{"tool_calls": 1, "events": 2}], n)

    def test_a_view_that_stays_behind_is_not_taken_for_the_whole(self) -> None:
        held = subprocess.Popen(["psql", "-X", "-q", self.call("server.status")["database"], "-c",
                                 "BEGIN; LOCK TABLE follower IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep(600)"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: self.daemon.sql("SELECT count(*) FROM pg_locks WHERE relation = 'follower'::regclass AND mode = 'ShareRowExclusiveLock' AND granted") == [["1"]],
                       "the followers are held")
            run = self.call("run.start", agent={"name": "a"})["run_id"]
            done = run_sql(self.daemon, "--csv", "-c", f"SELECT count(*) AS n FROM run_report WHERE run_id = '{run}'")
            self.assertEqual(done.stdout, "n\n0\n")
            self.assertRegex(done.stderr, r"^muniment: the views are 1 event behind the log: the result lacks the newest events \(report\.lag\)\n$")
            self.assertEqual(self.rows("SELECT max(events_behind) AS n FROM report.lag"), [{"n": 1}])
        finally:
            self.daemon.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()")
            held.wait()
        wait_until(lambda: self.rows("SELECT max(events_behind) AS n FROM report.lag") == [{"n": 0}], "they go on")
        self.assertEqual(run_sql(self.daemon, "-c", "SELECT 1 AS one").stderr, "")
        self.assertEqual(self.daemon.sql_at(run_sql(self.daemon, "--uri").stdout.strip(), "SELECT report.wait()"), [["0"]])
        self.assertIn("Call it before BEGIN", self.refusal("-c", "SELECT report.wait()"))   # this query runs in a transaction, which has waited already


class Limits(SqlCase):
    shared = True

    def test_a_query_that_runs_too_long_is_cancelled_and_says_so(self) -> None:
        said = self.refusal("--timeout", "1s", "-c", "SELECT pg_sleep(3600)", code=4)
        self.assertEqual(said, "muniment: deadline_exceeded: the query exceeded its time limit of 1 s and was cancelled "
                               "(canceling statement due to statement timeout). Raise the limit: --timeout 10min\n")

    def test_the_time_that_it_may_run(self) -> None:
        for words, seconds in (([], "30s"), (["--timeout", "90"], "90s"), (["--timeout", "10min"], "10min"), (["--timeout", "24h"], "1d")):
            self.assertEqual(self.rows("SHOW statement_timeout", *words), [{"statement_timeout": seconds}])
        for text in ("0", "25h", "86401", "1d", "-5s", "5 s", "99999999999999999999", "min"):
            self.assertIn(f"--timeout {text}: give a time from 1s to 24 h", self.refusal(f"--timeout={text}", "-c", "SELECT 1"))

    def test_a_reader_that_goes_takes_its_query_along(self) -> None:
        with subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "sql", "-c", "SELECT pg_sleep(29)"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(29)%' AND pid <> pg_backend_pid()"
            wait_until(lambda: self.daemon.sql(active) == [["1"]], "the query runs")
            process.kill()
        wait_until(lambda: self.daemon.sql(active) == [["0"]], "the query has gone")

    def test_nothing_but_the_views_and_artifacts_is_read_and_nothing_changed(self) -> None:
        before = self.rows("SELECT count(*) AS n FROM artifact")
        reads = "A reporter may only read the views of schema report, the table artifact and the view artifacts"
        for query in ("SELECT * FROM event", "SELECT * FROM run", "SELECT * FROM report_run", "INSERT INTO artifact SELECT * FROM artifact",
                      "DELETE FROM artifact", "DELETE FROM report.run_report", "CREATE TABLE report.t (a int)", "CREATE TEMP TABLE t (a int)", "SELECT lo_create(0)", "SET ROLE muniment",
                      "SELECT set_config('role', 'muniment_owner', false)", "COPY artifact TO PROGRAM 'cat'", "SELECT pg_read_file('postgresql.conf')"):
            with self.subTest(query=query):
                said = self.refusal("-c", query)
                self.assertIn("muniment: denied: ", said)
                self.assertIn(reads, said)
        self.assertEqual(self.rows("SELECT count(*) AS n FROM artifact"), before)

    def test_mistakes_are_shown_where_they_are(self) -> None:
        for query, said in (("SELECT 1,\n  nosuch FROM run_report", "line 2, column 3: column \"nosuch\" does not exist"),
                            ("SELECT 'ü', nosuch", "line 1, column 13: column \"nosuch\" does not exist"), ("SELEC 1", "line 1, column 1: syntax error"),
                            ("SELECT 1; SELECT 2", "only one statement is allowed. For several: psql \"$(muniment sql --uri)\" -f FILE"),
                            ("COPY artifact TO STDOUT", "COPY is not supported; pass only the SELECT, with --csv"), (" ;\n", "the query is missing"),
                            ("SELECT 1/0", "division by zero")):
            with self.subTest(query=query):
                self.assertIn("muniment: invalid_argument: " + said, self.refusal("-c", query).replace(f"--data {self.daemon.data} ", ""))
        self.assertIn("--csv or --json, not both", run_sql(self.daemon, "--csv", "--json", "-c", "SELECT 1", code=1).stdout)
        self.assertIn("-c or -f, not both", self.refusal("-c", "SELECT 1", "-f", "x"))
        self.assertIn("not_found", self.refusal("-f", "/nonexistent"))

    def test_a_query_has_a_size(self) -> None:
        fits = "SELECT 1 AS n --" + "x" * ((1 << 20) - 16)
        self.assertEqual(run_sql(self.daemon, "--csv", input=fits).stdout, "n\n1\n")
        self.assertIn("too_large: reading standard input: more than 1,048,576 bytes, the limit", self.refusal(input=fits + "x"))

    def test_rows_that_came_before_an_error_are_not_taken_for_all(self) -> None:
        done = run_sql(self.daemon, "--csv", "-c", "SELECT 1 / (50000 - n) AS x FROM generate_series(1, 60000) n", code=1)
        self.assertGreater(len(done.stdout.splitlines()), 1_000)
        self.assertRegex(done.stderr, r"division by zero\. The [\d,]+ rows above are incomplete")

    def test_a_sort_that_would_fill_the_disk_is_refused(self) -> None:
        self.assertEqual(self.rows("SHOW temp_file_limit"), [{"temp_file_limit": "4GB"}])
        self.daemon.sql("ALTER ROLE reporter SET temp_file_limit = '1MB'")
        self.addCleanup(self.daemon.sql, "ALTER ROLE reporter SET temp_file_limit = '4GB'")
        said = self.refusal("-c", "SELECT n FROM generate_series(1, 2000000) n ORDER BY md5(n::text) LIMIT 1 OFFSET 1000000")
        self.assertIn("over_budget: temporary file size exceeds temp_file_limit", said)


class OtherPrograms(SqlCase):
    shared = True

    def uri(self) -> str:
        return run_sql(self.daemon, "--uri", "--timeout", "7s").stdout.strip()

    def test_the_uri_serves_another_program(self) -> None:
        rows = self.daemon.sql_at(self.uri(), "SELECT session_user, current_setting('statement_timeout'), current_setting('search_path'), count(*) > 0 FROM run_report")
        self.assertEqual(rows, [["reporter", "7s", "report,public", "t"]])

    def test_on_a_terminal_it_is_psql(self) -> None:
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["PAGER"] = "cat"
            os.execv(str(BUILD / "muniment"), ["muniment", "--data", str(self.daemon.data), "sql"])
        os.write(terminal, b"SELECT 'I am ' || session_user AS who;\n\\q\n")
        text = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(terminal, 4096):
                text += chunk
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
        self.assertIn(b"I am reporter", text)

    def test_without_psql_it_says_what_to_install(self) -> None:
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["PATH"] = "/nonexistent"
            os.execv(str(BUILD / "muniment"), ["muniment", "--data", str(self.daemon.data), "sql"])
        text = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(terminal, 4096):
                text += chunk
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1)
        self.assertIn(b"apt-get install postgresql-client", text)

    def test_no_daemon_is_started(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([BUILD / "muniment", "--data", folder, "sql", "-c", "SELECT 1"], capture_output=True, text=True)
            self.assertEqual((done.returncode, os.listdir(folder)), (4, []))
            self.assertIn(f"Start it: muniment --data {folder} up", done.stderr)

    def test_another_database_is_asked_as_its_login_may(self) -> None:
        """On a server of another operator, the daemon's own login assumes the role."""
        private = self.daemon.sql("SELECT current_setting('unix_socket_directories')")[0][0]
        self.daemon.sql("CREATE ROLE app LOGIN; GRANT muniment_reporter TO app; CREATE ROLE stranger LOGIN")
        for login, code in (("app", 0), ("stranger", 1)):
            uri = f"postgresql://{login}:secret@/muniment?host={private}&port=5432"
            done = subprocess.run([BUILD / "muniment", "--data", self.daemon.folder / "none", "sql", "--csv", "-c", "SELECT session_user, current_user"],
                                  capture_output=True, text=True, env={**os.environ, "MUNIMENT_DATABASE": uri})
            self.assertEqual(done.returncode, code, done.stderr)
            if code == 0:
                self.assertEqual(done.stdout, "session_user,current_user\napp,muniment_reporter\n")
            else:
                self.assertIn("denied: this login may not assume the role reporter", done.stderr)
                self.assertNotIn("secret", done.stderr)


VIEWS_HEAD = """# The views of schema report

This page lists the columns of each view, and the views that it joins. A test compares it with the database. [sql.md](sql.md)
describes the views with examples.
"""
# A view, and the columns by which others find at most one of its rows.
RELATIONS = (("run_report", ("log_no", "run_id")), ("step_report", ("log_no", "run_id", "step_id")), ("claim_report", ("log_no", "claim_id")),
             ("evidence_report", ("log_no", "evidence_id")), ("task_report", ("log_no", "run_id", "task_id")), ("artifact_report", ("log_no", "artifact_id")),
             ("event_log", ("log_no", "seq")))


def blocks() -> list[tuple[str, list[str]]]:
    """Returns each query of docs/sql.md with the column names in its output."""
    found, text = [], DOCUMENT.read_text()
    for query, output in re.findall(r"```sql\n(.*?)```\n+```text\n(.*?)```", text, flags=re.S):
        found.append((query.strip(), output.splitlines()[0].split()))
    return found


class Document(SqlCase):
    """With imported traces, every query runs and returns the columns that the document shows."""

    shared = True

    def setUp(self) -> None:
        super().setUp()
        import_examples(self.daemon)
        self.followed()

    def test_every_query(self) -> None:
        queries = blocks()
        self.assertGreaterEqual(len(queries), 20)
        answered = 0
        for query, columns in queries:
            with self.subTest(query=query):
                lines = run_sql(self.daemon, "--csv", "-c", query).stdout.splitlines()
                self.assertEqual(lines[0].split(","), columns)
                answered += len(lines) > 1
        self.assertGreater(answered, 10)

    def test_the_page_of_the_views_is_that_of_the_catalogue(self) -> None:
        """MUNIMENT_ACCEPT=1 writes docs/views.md."""
        columns = self.rows("SELECT c.relname AS view, obj_description(c.oid) AS about, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, "
                            "col_description(c.oid, a.attnum) AS text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
                            "WHERE c.relnamespace = 'report'::regnamespace AND c.relkind = 'v' ORDER BY c.relname, a.attnum")
        text = VIEWS_HEAD
        for view in sorted({row["view"] for row in columns}):
            mine = [row for row in columns if row["view"] == view]
            names = {row["name"] for row in mine}
            joins = [f"`{other}` by {', '.join(f'`{key}`' for key in keys)}" for other, keys in RELATIONS if other != view and set(keys) <= names]
            text += f"\n## {view}\n\n{mine[0]['about']}.\n\n" + (f"Joins {'; '.join(joins)}.\n\n" if joins else "") + "| column | type | |\n|---|---|---|\n"
            text += "".join(f"| `{row['name']}` | {row['type']} | {row['text'].replace('|', chr(92) + '|')} |\n" for row in mine)
        page = ROOT / "docs" / "views.md"
        if os.environ.get("MUNIMENT_ACCEPT") == "1":
            page.write_text(text)
        self.assertEqual(page.read_text(), text)
        for other, keys in RELATIONS:
            self.assertEqual(self.rows(f"SELECT count(*) AS n FROM (SELECT {', '.join(keys)} FROM report.{other} WHERE {keys[-1]} IS NOT NULL GROUP BY {', '.join(keys)} "
                                       "HAVING count(*) > 1) twice"), [{"n": 0}], "a join finds at most one row")

    def test_every_view_is_described(self) -> None:
        views = [row["view"] for row in self.rows("SELECT table_name AS view FROM information_schema.views WHERE table_schema = 'report'")]
        self.assertEqual(len(views), 25)
        for view in views:
            self.assertIn(f"`{view}`", DOCUMENT.read_text())
            self.assertEqual(self.rows(f"SELECT count(*) AS n FROM pg_attribute WHERE attrelid = 'report.{view}'::regclass AND attnum > 0 "
                                       "AND col_description(attrelid, attnum) IS NULL"), [{"n": 0}], view)
            run_sql(self.daemon, "-c", f"SELECT * FROM report.{view} LIMIT 3")


if __name__ == "__main__":
    main()
