"""Tests of muniment workflow run: spec writer, coder and tester run in order, the coder cannot see the golden files,
and the daemon compares the outputs."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from support import BUILD, Daemon, main, muniment
from workflow_case import CODER, FINISH_S, SPEC, SPEC_WRITER, WorkflowCase

FILES_MAX = 100_000   # limits::workflow_implementation_files_max


class Flow(WorkflowCase):
    def test_outputs_that_equal_the_golden_files_pass(self) -> None:
        self.write()
        result = self.run_workflow()
        self.assertTrue(result["passed"])
        self.assertEqual([step["name"] for step in result["steps"]], ["spec_writer", "coder", "tester"])
        self.assertEqual([self.step(result, name)["isolation"] for name in ("coder", "tester")], ["full", "full"])
        self.assertEqual(set(result["evidence"]), {"artifact", "workflow", "validation"})
        pair = self.evidence(result["evidence"]["validation"])["content"]["workflow"]["pairs"][0]
        self.assertTrue(pair["equal"])
        self.assertEqual(pair["golden"]["hash"], pair["output"]["hash"])
        self.assertEqual(pair["golden"]["size_bytes"], len("Hello, Ada!\n"))

    def test_the_evidence_completes_a_task_under_the_strict_policy(self) -> None:
        self.write()
        for task, text in (("t1", "Write greet.sh, which greets the person in its first argument"), ("t2", "Make the tests of greet.sh pass")):
            self.open_task(text, task, "--workflow", "workflow.toml")
            result = self.run_workflow("--task", task)
            done = self.muniment("task", "complete", task, "--run", self.run_id, "--strict", "--evidence", result["evidence"]["validation"])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_programs_have_shared_memory_and_terminals(self) -> None:
        """Semaphores of multiprocessing are files of /dev/shm, and a terminal is made by opening /dev/ptmx."""
        program = """import multiprocessing, os, pty, sys
def double(x): return x + x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool: assert pool.map(double, [1, 2]) == [2, 4]
    child, terminal = pty.fork()
    if child == 0: os.execvp("sh", ["sh", "-c", "tty; stty size >/dev/null && echo terminal"])
    said = b""
    try:
        while piece := os.read(terminal, 100): said += piece
    except OSError: pass
    assert b"/dev/pts/" in said and b"terminal" in said, said
    with open("/dev/shm/own", "w") as file: file.write("Hello, Ada!")
    print(open("/dev/shm/own").read())
    print(sorted(os.listdir("/dev/shm")), file=open("/dev/stderr", "w"))
"""
        coder = f"#!/bin/sh\ncat > greet.py <<'END'\n{program}END\npython3 greet.py\n"
        for isolation in ("full", "none"):
            with self.subTest(isolation=isolation):
                self.write(coder=coder, tester='#!/bin/sh\nexec python3 "$IMPLEMENTATION/greet.py"\n', top=f'isolation = "{isolation}"')
                self.assertTrue(self.run_workflow()["passed"])
                self.assertEqual(self.step(self.run_workflow(), "coder")["refused"], 0)   # whatever folders PATH has
        self.assertFalse(pathlib.Path("/dev/shm/own").exists())

    def test_the_private_folders_have_a_limit_together(self) -> None:
        self.write(coder=CODER + "head -c 600000 /dev/zero > /tmp/a\nif head -c 600000 /dev/zero > /dev/shm/b; then exit 3; fi\n", coder_members="disk_bytes = 1000000")
        self.assertTrue(self.run_workflow()["passed"])

    def test_links_are_part_of_the_implementation(self) -> None:
        output = self.folder / "copied"
        self.write(coder=CODER + "mv greet.sh real.sh\nln -s real.sh greet.sh\nmkdir d\nln -s .. d/up\nln -s /etc/hostname out\nln -s nowhere broken\n")
        self.run_workflow("--output", str(output))
        links = {str(path.relative_to(output)): os.readlink(path) for path in output.rglob("*") if path.is_symlink()}
        self.assertEqual(links, {"greet.sh": "real.sh", "d/up": "..", "out": "/etc/hostname", "broken": "nowhere"})
        stored = next(event["body"] for event in self.events("artifact.stored") if event["body"]["metadata"].get("what") == "implementation")
        archive = subprocess.run(self.words("artifact", "get", stored["artifact_id"], "-o", "-"), capture_output=True, check=True).stdout
        unpacked = self.folder / "unpacked"
        unpacked.mkdir()
        subprocess.run(["tar", "--zstd", "-xf", "-", "-C", str(unpacked)], input=archive, check=True)
        self.assertEqual({str(path.relative_to(unpacked)): os.readlink(path) for path in unpacked.rglob("*") if path.is_symlink()}, links)
        self.assertEqual((unpacked / "real.sh").read_bytes(), (output / "greet.sh").read_bytes())

    def test_too_many_files_are_told_at_once(self) -> None:
        """Before the first step, and while the coder still runs."""
        told = f"more than {FILES_MAX} files and links"
        (self.folder / "start").mkdir()
        source = self.folder / "start" / "0"
        for i in range(FILES_MAX + 1):
            if i % 10_000 == 0:   # a file has a limited number of names
                source = self.folder / "start" / str(i)
                source.touch()
            else:
                os.link(source, self.folder / "start" / str(i))
        self.write(coder_members='start = "start"')
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(told, done.stderr)
        self.assertEqual(self.events("command.started"), [])
        shutil.rmtree(self.folder / "start")
        self.write(coder=f"#!/bin/sh\nseq {FILES_MAX + 1} | xargs touch\nsleep 10000\n")
        result = self.run_workflow(status=1)
        self.assertIn("the coder failed: its folder has " + told, result["reason"])

    def test_one_differing_byte_fails_and_its_offset_is_recorded(self) -> None:
        self.write(coder=CODER.replace("Hello,", "Hello;"))
        self.open_task("Write greet.sh, which greets the person in its first argument")
        result = self.run_workflow("--task", "t1", status=1)
        self.assertFalse(result["passed"])
        self.assertIn("greeting.txt: differs at byte 5", result["comparison"])
        self.assertNotIn("Ada", result["comparison"])
        done = self.muniment("task", "complete", "t1", "--run", self.run_id, "--evidence", result["evidence"]["validation"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("differ from their golden files", done.stdout)

    def test_a_workflow_without_a_run_makes_one_and_ends_it(self) -> None:
        self.write()
        done = self.muniment("workflow", "run", "workflow.toml", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.call("run.get", run_id=json.loads(done.stdout)["run_id"])["run"]
        self.assertEqual((run["status"], run["outcome"]), ("ended", "success"), run)

    def test_the_text_has_a_line_for_each_step_and_the_verdict(self) -> None:
        self.write()
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id)
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:4]], ["spec_writer", "coder", "tester", "passed"], done.stdout)
        shown = self.muniment("run", "show", self.run_id).stdout
        self.assertIn("evidence: validation", shown)
        self.assertIn("1 of 1 outputs equal their golden files", shown)

    def test_a_failed_workflow_completes_no_task(self) -> None:
        self.call("task.open", run_id=self.run_id, task_id="t1", content="Write greet.sh, which greets the person in its first argument")
        self.write(coder="#!/bin/sh\necho 'echo wrong' > greet.sh\n")
        evidence = self.run_workflow("--task", "t1", status=1)["evidence"]
        for ids in ([evidence["artifact"]], [evidence["workflow"]], [evidence["artifact"], evidence["workflow"]], list(evidence.values())):
            for strict in (False, True):
                answer = self.call("task.complete", run_id=self.run_id, task_id="t1", evidence_ids=ids, strict=strict)
                self.assertFalse(answer["can_complete"], answer)

    def test_validate_code_uses_the_specification_of_the_project(self) -> None:
        self.write()
        (self.folder / ".muniment").mkdir()
        for name in ("workflow.toml", "write_spec.sh", "code.sh", "test.sh"):
            (self.folder / name).rename(self.folder / ".muniment" / name)
        done = self.muniment("validate-code", "Greet a person", "--json", "--run", self.run_id)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_two_workflows_at_once_do_not_disturb_each_other(self) -> None:
        self.write(coder=CODER + "sleep 0.2\n")
        children = [subprocess.Popen(self.words("workflow", "run", "workflow.toml", "--json"), cwd=self.folder, env=self.env(), text=True,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        for child in children:
            out, err = child.communicate(timeout=FINISH_S)
            self.assertEqual(child.returncode, 0, out + err)
            self.assertTrue(json.loads(out)["passed"])

    def test_a_mistyped_member_is_named_with_its_line(self) -> None:
        self.write(coder_members="secnods = 3")
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id)
        self.assertEqual(done.returncode, 1)
        self.assertIn('workflow.toml: line 7: coder.secnods: unknown member. Did you mean "seconds"?', done.stderr)
        self.assertEqual(self.events("command.started"), [])


class Failures(WorkflowCase):
    def refused(self, reason: str, **files: str) -> dict[str, Any]:
        self.write(**files)
        result = self.run_workflow(status=1)
        self.assertFalse(result["passed"])
        self.assertIn(reason, result["reason"])
        return result

    def test_a_coder_that_fails(self) -> None:
        result = self.refused("the coder failed: exit 3", coder="#!/bin/sh\nexit 3\n")
        self.assertEqual([step["name"] for step in result["steps"]], ["spec_writer", "coder"])

    def test_a_spec_writer_that_writes_no_golden_file(self) -> None:
        self.refused("wrote no golden file greeting.txt", spec_writer="#!/bin/sh\ntrue\n")

    def test_a_golden_file_without_a_pair(self) -> None:
        self.refused("golden file more.txt has no pair", spec_writer=SPEC_WRITER + 'echo x > "$GOLDEN/more.txt"\n')

    def test_a_golden_file_that_is_a_link(self) -> None:
        self.refused("greeting.txt is not a regular file", spec_writer='#!/bin/sh\nln -s /etc/passwd "$GOLDEN/greeting.txt"\n')

    def test_a_coder_that_prints_without_end(self) -> None:
        self.refused("exceeded its limit output_bytes", coder="#!/bin/sh\nyes\n", coder_members="output_bytes = 100000")
        ended = self.events("command.ended")[-1]["body"]
        self.assertEqual((ended["x_ended_by"], ended["stdout"]["size_bytes"]), ("output_bytes", 100000))

    def test_a_coder_that_fills_the_disk(self) -> None:
        self.refused("exceeded its limit disk_bytes", coder_members="disk_bytes = 1000000",
                     coder="#!/bin/sh\ni=0\nwhile :; do head -c 200000 /dev/zero > file$i; i=$((i+1)); done\n")

    def test_a_coder_that_hangs(self) -> None:
        self.refused("exceeded its limit seconds", coder="#!/bin/sh\nsleep 1000\n", coder_members="seconds = 1")

    def test_a_tester_that_writes_no_output(self) -> None:
        spec = SPEC.replace('"stdout"', '"out/greeting.txt"')
        result = self.refused("1 of 1 outputs differ", spec=spec)
        self.assertIn("the tester wrote no output", result["comparison"])

    def test_a_tester_that_hangs_or_prints_garbage(self) -> None:
        self.refused("exceeded its limit seconds", tester="#!/bin/sh\nsleep 1000\n", tester_members="seconds = 1")
        self.refused("1 of 1 outputs differ", tester="#!/bin/sh\nhead -c 100000 /dev/urandom\n")

    def test_a_program_that_does_not_exist(self) -> None:
        self.write()
        (self.folder / "code.sh").unlink()
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id)
        self.assertEqual(done.returncode, 1)
        self.assertIn("code.sh", done.stderr)


class Pinned(WorkflowCase):
    """A workflow proves something only if the one who completes the task did not write it: the task names it by its digest."""

    TASK = "Write greet.sh, which greets the person in its first argument"

    def codes(self, answer: dict[str, Any], blocks: bool = True) -> set[str]:
        return {finding["code"] for finding in answer["findings"] if finding["blocks"] == blocks}

    def complete(self, evidence: dict[str, str], task: str = "t1", **more: Any) -> dict[str, Any]:
        return dict(self.call("task.complete", run_id=self.run_id, task_id=task, evidence_ids=list(evidence.values()), **more))

    def digest(self) -> str:
        return self.muniment("workflow", "digest", "workflow.toml").stdout.strip()

    def test_the_three_pieces_complete_the_task_for_which_the_workflow_was_pinned(self) -> None:
        self.write()
        self.open_task(self.TASK, "t1", "--workflow", "workflow.toml")
        self.assertEqual(self.call("task.list", run_id=self.run_id)["tasks"][0]["workflow"], self.digest())
        self.assertIn("workflow " + self.digest()[:9], self.muniment("run", "show", self.run_id).stdout)
        shown = self.muniment("sql", "-c", f"SELECT workflow FROM task_report WHERE run_id = '{self.run_id}'").stdout
        self.assertIn(self.digest(), shown)
        self.write(coder=CODER + "echo other > note\n")   # the coder's program is not part of the digest
        evidence = self.run_workflow("--task", "t1")["evidence"]
        for piece in ("artifact", "validation"):
            self.assertEqual(self.evidence(evidence[piece])["content"]["workflow"]["digest"], self.digest())
        done = self.complete(evidence, strict=True)
        self.assertTrue(done["completed"], done)

    def test_a_workflow_that_nobody_named_is_weak(self) -> None:
        self.write()
        self.open_task(self.TASK)
        evidence = self.run_workflow("--task", "t1")["evidence"]
        self.assertIn("unpinned_workflow", self.codes(self.complete(evidence, strict=True)))
        done = self.complete(evidence)
        self.assertTrue(done["completed"], done)
        self.assertIn("unpinned_workflow", self.codes(done, blocks=False))
        self.assertFalse(done["evidence_status"][evidence["validation"]]["strong"])

    def test_another_workflow_does_not_complete_the_task(self) -> None:
        changes: dict[str, dict[str, str]] = {"specification": {"top": "environment = []"}, "spec writer": {"spec_writer": SPEC_WRITER + "true\n"},
                   "tester": {"tester": "#!/bin/sh\nsh \"$IMPLEMENTATION/greet.sh\" Ada\n"}}
        for task, (name, change) in enumerate(changes.items()):
            with self.subTest(name):
                self.write()
                self.open_task(self.TASK, str(task), "--workflow", "workflow.toml")
                self.write(**change)
                before = len(self.events("command.started"))
                done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--task", str(task))
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(f"task {task} was opened for the workflow", done.stderr)
                self.assertEqual(len(self.events("command.started")), before)
                evidence = self.run_workflow()["evidence"]
                for strict in (False, True):
                    self.assertIn("other_workflow", self.codes(self.complete(evidence, str(task), strict=strict)))
        text = self.call("evidence.record", run_id=self.run_id, type="review", content={"text": "greet.sh greets the person in its first argument."})
        self.assertIn("other_workflow", self.codes(self.complete({"text": text["evidence_id"]}, "0")))

    def test_a_file_of_the_workflow_that_changes_meanwhile_stops_it(self) -> None:
        self.write(spec_writer=SPEC_WRITER + f"echo >> {self.folder}/test.sh\n")
        self.assertEqual(self.run_workflow(status=1)["reason"], "the files of the workflow changed while the spec_writer ran")

    def test_a_pinned_task_requires_evidence_and_cannot_be_changed(self) -> None:
        self.write()
        self.open_task(self.TASK, "t1", "--workflow", "workflow.toml")
        for more in ({}, {"workflow": "0" * 64}):
            with self.assertRaises(muniment.MunimentError) as caught:
                self.call("task.open", run_id=self.run_id, task_id="t1", content=self.TASK, **more)
            self.assertEqual(caught.exception.code, "conflict")
        with self.assertRaises(muniment.MunimentError):
            self.call("task.open", run_id=self.run_id, content=self.TASK, workflow="0" * 64, requires_evidence=False)

    def refused_as(self, code: str, **files: str) -> None:
        """A workflow of which any program passes the comparison: neither policy accepts it, whoever wrote it."""
        self.write(coder="#!/bin/sh\ntouch greet.sh\n", **files)
        self.open_task("Fix the login form", code, "--workflow", "workflow.toml")
        result = self.run_workflow("--task", code, status=1)
        self.assertFalse(result["passed"])
        self.assertIn(code, self.codes(self.complete(result["evidence"], code)), result)

    def test_empty_golden_files_prove_nothing(self) -> None:
        self.refused_as("empty_golden", spec_writer='#!/bin/sh\necho > "$GOLDEN/greeting.txt"\n', tester='#!/bin/sh\nsh "$IMPLEMENTATION/greet.sh"\necho\n')

    def test_a_tester_that_opens_no_file_of_the_implementation_proves_nothing(self) -> None:
        self.refused_as("unread_implementation", tester='#!/bin/sh\nls "$IMPLEMENTATION" > /dev/null\necho "Hello, Ada!"\n')

    def test_a_tester_may_open_the_implementation_in_any_way(self) -> None:
        for tester in ('cd "$IMPLEMENTATION" && sh greet.sh Ada', 'ln -s "$IMPLEMENTATION" here && sh here/greet.sh Ada',
                       'ln -s "$IMPLEMENTATION" /tmp/x && sh /tmp/x/greet.sh Ada', 'cp -r "$IMPLEMENTATION" copy && sh copy/greet.sh Ada',
                       '"$IMPLEMENTATION/run"'):
            with self.subTest(tester):
                self.write(coder=CODER + "(echo '#!/bin/sh'; echo 'echo Hello, Ada!') > run\nchmod 755 run\n", tester=f"#!/bin/sh\n{tester}\n")
                self.assertTrue(self.run_workflow()["passed"])

    def test_golden_files_that_the_coder_can_read_are_weak(self) -> None:
        self.write(spec_writer=SPEC_WRITER + 'cp "$GOLDEN/greeting.txt" "$SPECIFICATION/example.txt"\n')
        self.open_task(self.TASK, "t1", "--workflow", "workflow.toml")
        evidence = self.run_workflow("--task", "t1")["evidence"]
        self.assertIn("told_golden", self.codes(self.complete(evidence, strict=True)))
        self.assertTrue(self.complete(evidence)["completed"])


class Compared(WorkflowCase):
    """The daemon trusts no comparison of a client: it reads the artifacts and the order of the log itself."""

    def command(self) -> str:
        command = str(self.call("command.start", run_id=self.run_id, argv=["sh"], cwd="/", env={})["command_id"])
        self.call("command.end", run_id=self.run_id, command_id=command, exit_code=0)
        return command

    def stored(self, body: bytes, run_id: str = "", **more: Any) -> str:
        return str(self.client.put(run_id or self.run_id, body, **more)["artifact_id"])

    def recorded(self, command: str, **workflow: Any) -> dict[str, Any]:
        return dict(self.call("evidence.record", run_id=self.run_id, type="validation", command_id=command, workflow=workflow))

    def refused(self, code: str, command: str, **workflow: Any) -> None:
        with self.assertRaises(muniment.MunimentError) as caught:
            self.recorded(command, **workflow)
        self.assertEqual(caught.exception.code, code, caught.exception)

    def test_bytes_decide(self) -> None:
        golden = self.stored(b"right")
        coder, tester = self.command(), self.command()
        output, wrong = self.stored(b"right", step_id="tester"), self.stored(b"wrong", step_id="tester")
        self.assertTrue(self.recorded(tester, coder_id=coder, pairs=[{"name": "a", "golden": golden, "output": output}])["passed"])
        self.assertFalse(self.recorded(tester, coder_id=coder, pairs=[{"name": "a", "golden": golden, "output": wrong}])["passed"])
        self.assertFalse(self.recorded(tester, coder_id=coder, pairs=[{"name": "a", "golden": golden}])["passed"])

    def test_the_order_of_the_log_must_be_that_of_a_blind_workflow(self) -> None:
        golden = self.stored(b"right")
        coder, tester = self.command(), self.command()
        late = self.stored(b"late")
        self.refused("conflict", tester, coder_id=coder, pairs=[{"name": "a", "golden": late, "output": late}])
        self.refused("conflict", coder, coder_id=tester, pairs=[{"name": "a", "golden": golden, "output": golden}])
        self.refused("invalid_argument", tester, pairs=[{"name": "a", "golden": golden, "output": golden}])
        self.refused("not_found", tester, coder_id=golden, pairs=[{"name": "a", "golden": golden}])

    def test_artifacts_of_other_runs_are_not_found(self) -> None:
        other = str(self.call("run.start", agent={"name": "test"})["run_id"])
        elsewhere = self.stored(b"right", other)
        coder, tester = self.command(), self.command()
        self.refused("not_found", tester, coder_id=coder, pairs=[{"name": "a", "golden": elsewhere}])
        self.refused("not_found", tester, golden=[{"name": "a", "artifact_id": elsewhere}])


class Policy(WorkflowCase):
    """A completion policy that requires isolation: the command reads it, and the daemon enforces it."""

    shared = False

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        policy = cls.daemon.folder / "completion.toml"
        policy.write_text('[task.blind]\nisolation = "full"\n'
                          f'[task.listed]\nstrict = true\nisolation = "full"\nworkflows = ["{cls.listed()}"]\n')
        (cls.daemon.folder / "muniment.toml").write_text(f'completion_policy = "{policy}"\n')
        cls.daemon.arguments += ["--config", str(cls.daemon.folder / "muniment.toml")]
        cls.daemon.start()

    def test_only_a_workflow_with_the_demanded_isolation_completes_the_task(self) -> None:
        self.write(top='isolation = "none"')
        self.call("task.open", run_id=self.run_id, task_id="t1", content="Write greet.sh, which greets a person", type="blind")
        done = self.muniment("exec", "--run", self.run_id, "--evidence", "review", "--task", "t1", "--", "python3", "-c", "print('greet.sh greets')")
        evidence = done.stderr.split("muniment: evidence ")[1].split()[0]
        refused = self.call("task.complete", run_id=self.run_id, task_id="t1", evidence_ids=[evidence])
        self.assertIn("isolation", [finding["code"] for finding in refused["findings"] if finding["blocks"]])
        result = self.run_workflow("--task", "t1", "--config", str(self.daemon.folder / "muniment.toml"))
        self.assertEqual(result["isolation_demanded"], "full")
        done = self.call("task.complete", run_id=self.run_id, task_id="t1", evidence_ids=list(result["evidence"].values()))
        self.assertTrue(done["completed"], done)

    @classmethod
    def listed(cls) -> str:
        """Returns the digest of the workflow in a folder other than that in which the test runs it."""
        case = cls("test_the_policy_lists_a_workflow")
        case.folder = cls.daemon.folder / "elsewhere"
        case.folder.mkdir()
        case.write()
        return subprocess.run([str(BUILD / "muniment"), "workflow", "digest", str(case.folder / "workflow.toml")], capture_output=True, text=True,
                              check=True).stdout.strip()

    def test_the_policy_lists_a_workflow(self) -> None:
        self.write()
        self.call("task.open", run_id=self.run_id, task_id="t2", content="Write greet.sh, which greets a person", type="listed")
        config = ("--config", str(self.daemon.folder / "muniment.toml"))
        evidence = self.run_workflow("--task", "t2", *config)["evidence"]
        done = self.call("task.complete", run_id=self.run_id, task_id="t2", evidence_ids=list(evidence.values()))
        self.assertTrue(done["completed"], done)
        self.assertTrue(done["evidence_status"][evidence["validation"]]["strong"])
        self.write(spec_writer=SPEC_WRITER + "true\n")
        self.call("task.open", run_id=self.run_id, task_id="t3", content="Write greet.sh, which greets a person", type="listed")
        told = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--json", "--task", "t3", *config)
        self.assertIn("muniment: task t3 was opened without a workflow, and the policy does not list", told.stderr)
        evidence = json.loads(told.stdout)["evidence"]
        refused = self.call("task.complete", run_id=self.run_id, task_id="t3", evidence_ids=list(evidence.values()))
        self.assertIn("unpinned_workflow", [finding["code"] for finding in refused["findings"] if finding["blocks"]])


if __name__ == "__main__":
    main()
