"""Tests of the framing and the envelope: invalid requests are refused early, with a clear error, and do not affect other clients."""
from __future__ import annotations

import contextlib
import fcntl
import json
import struct
import termios
import threading
import uuid

from support import DaemonCase, Raw, main, wait_until

MIB = 1 << 20


def request(method: str, params: str, request_id: int = 1) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}' % (request_id, method.encode(), params.encode())


def unread_bytes(raw: Raw) -> int:
    """Returns the number of bytes that were sent but that the daemon has not read."""
    return int(struct.unpack("i", fcntl.ioctl(raw.socket, termios.TIOCOUTQ, bytes(4)))[0])


class Envelope(DaemonCase):
    shared = True

    def refuse(self, line: bytes, golden: str, code: str = "invalid_argument", **data: object) -> None:
        """Expects this error for `line`; the connection and the run stay usable."""
        raw = self.raw()
        answer = raw.ask(line)
        self.assertIn("error", answer, answer)
        self.assertEqual(answer["error"]["data"]["code"], code, answer)
        for name, value in data.items():
            self.assertEqual(answer["error"]["data"].get(name), value, answer)
        self.golden(golden, f"{answer['error']['message']}\n")
        self.assertIn("result", raw.ask(request("server.health", "{}")))
        self.assert_alive()

    def test_malformed_json(self) -> None:
        self.refuse(b'{"jsonrpc":"2.0","id":1,"method":', "malformed")

    def test_a_line_that_is_no_json_at_all(self) -> None:
        self.refuse(b"GET / HTTP/1.1", "not_json")

    def test_two_values_on_a_line(self) -> None:
        self.refuse(request("server.health", "{}") + b" {}", "two_values")

    def test_64_levels_are_accepted_and_65_refused(self) -> None:
        # The request and its params are two levels, the body is the third.
        def nested(levels: int) -> str:
            return '{"a":' * levels + "1" + "}" * levels

        def append(levels: int) -> bytes:
            return request("event.append", '{"run_id":"%s","type":"x.test.deep","body":%s}' % (self.run_id, nested(levels)))

        self.assertIn("result", self.raw().ask(append(62)))
        self.refuse(append(63), "too_deep")

    def test_a_hundred_thousand_levels(self) -> None:
        self.refuse(b"[" * 100_000 + b"]" * 100_000, "too_deep_by_far")

    def test_duplicate_keys(self) -> None:
        self.refuse(request("event.append", '{"run_id":"%s","type":"x.test.a","body":{"a":1,"a":2}}' % self.run_id), "duplicate_key")

    def test_duplicate_keys_of_which_one_is_escaped(self) -> None:
        self.refuse(request("event.append", '{"run_id":"%s","type":"x.test.a","body":{"a":1,"\\u0061":2}}' % self.run_id), "duplicate_key_escaped")

    def test_nul_in_a_string(self) -> None:
        self.refuse(request("event.append", '{"run_id":"%s","type":"x.test.a","body":{"a":"\\u0000"}}' % self.run_id), "nul")

    def test_lone_surrogate(self) -> None:
        self.refuse(request("event.append", '{"run_id":"%s","type":"x.test.a","body":{"a":"\\ud800"}}' % self.run_id), "lone_surrogate")

    def test_not_utf8(self) -> None:
        self.refuse(b'{"jsonrpc":"2.0","id":1,"method":"event.append","params":{"run_id":"\xff\xfe"}}', "not_utf8")

    def test_numbers_outside_the_limits(self) -> None:
        for number, golden in (("18446744073709551616", "integer_over_64_bits"), ("-9223372036854775809", "integer_below_64_bits"),
                               ("1e309", "exponent"), ("1e-20000", "exponent_negative"), ("0." + "1" * 41, "digits"),
                               ("NaN", "nan"), ("01", "leading_zero")):
            with self.subTest(number=number):
                self.refuse(request("event.append", '{"run_id":"%s","type":"x.test.a","body":{"a":%s}}' % (self.run_id, number)), golden)

    def test_numbers_inside_the_limits_keep_their_text(self) -> None:
        numbers = ["18446744073709551615", "-9223372036854775808", "1e308", "1E-308", "-0.0", "0." + "1" * 39, "1.50"]
        body = '{"n":[%s]}' % ",".join(numbers)
        answer = self.raw().ask(request("event.append", '{"run_id":"%s","type":"x.test.a","body":%s}' % (self.run_id, body)))
        stored = self.daemon.sql(f"SELECT body FROM event WHERE seq = {answer['result']['seq']}")
        self.assertEqual(stored, [[body]])

    def test_batch_arrays_are_refused(self) -> None:
        self.refuse(b"[" + request("server.health", "{}") + b"]", "batch")

    def test_an_id_that_is_too_long(self) -> None:
        self.refuse(b'{"jsonrpc":"2.0","id":"%s","method":"server.health"}' % (b"x" * 100_000), "id_too_long", "too_large", limit=256)

    def test_a_notification_that_would_write(self) -> None:
        raw = self.raw()
        before = self.call("run.get", run_id=self.run_id)
        raw.send(b'{"jsonrpc":"2.0","method":"event.append","params":{"run_id":"%s","type":"x.test.a","body":{}}}\n' % self.run_id.encode())
        raw.request("server.health", 7)
        answers = [raw.line()]
        if answers[0] and answers[0].get("id") != 7:   # the refusal, if one is sent, names the reason
            self.golden("notification", f"{answers[0]['error']['message']}\n")
            answers.append(raw.line())
        self.assertEqual(answers[-1]["id"], 7)
        self.assertEqual(self.call("run.get", run_id=self.run_id), before)
        self.assertEqual(len(self.events()), 1)

    def test_unknown_method(self) -> None:
        self.refuse(request("event.apend", "{}"), "unknown_method")

    def test_unknown_field(self) -> None:
        self.refuse(request("event.append", '{"run_id":"%s","type":"x.test.a","body":{},"exepcted_run_seq":3}' % self.run_id), "unknown_field")

    def test_missing_field(self) -> None:
        self.refuse(request("event.append", '{"run_id":"%s","body":{}}' % self.run_id), "missing_field")

    def test_wrong_kind_of_field(self) -> None:
        self.refuse(request("event.append", '{"run_id":7,"type":"x.test.a","body":{}}'), "wrong_kind")

    def test_params_that_are_a_list(self) -> None:
        self.refuse(request("server.health", "[1]"), "params_list")

    def test_no_method(self) -> None:
        self.refuse(b'{"jsonrpc":"2.0","id":1}', "no_method")

    def test_ids_that_are_paths(self) -> None:
        for run_id, golden in (("..", "run_id_dots"), ("a/b", "run_id_slash"), ("a" * 300, "run_id_long"),
                               ("_log", "run_id_underscore"), ("", "run_id_empty"), ("\u00e9", "run_id_not_ascii"),
                               ("a\0b", "run_id_nul"), (".hidden", "run_id_hidden"), ("a\nb", "run_id_newline")):
            with self.subTest(run_id=run_id):
                self.refuse(request("run.start", json.dumps({"run_id": run_id, "agent": {"name": "test"}})), golden)

    def test_step_ids(self) -> None:
        params = {"run_id": self.run_id, "type": "x.test.a", "body": {}}
        self.assertIn("result", self.raw().ask(request("event.append", json.dumps({**params, "step_id": "a:b|c@d+e=f"}))))
        for step_id, golden in (("..", "step_id_dots"), ("a/b", "step_id_slash"), ("a" * 201, "step_id_long"), ("", "step_id_empty"),
                                ("a\0b", "step_id_nul")):
            with self.subTest(step_id=step_id):
                self.refuse(request("event.append", json.dumps({**params, "step_id": step_id})), golden)

    def test_ids_that_are_paths_are_refused_wherever_they_stand(self) -> None:
        artifact_id = self.client.put(self.run_id, b"kept")["artifact_id"]
        for bad in ("..", "../../postgres/PG_VERSION", "a/b", "a" * 300, "a\0b"):
            for method, params in (("run.get", {"run_id": bad}), ("run.rehydrate", {"run_id": bad}), ("event.list", {"run_id": bad}),
                                   ("artifact.put", {"run_id": bad, "text": "x"}),
                                   ("artifact.put", {"run_id": self.run_id, "step_id": bad, "text": "x"}),
                                   ("artifact.get", {"artifact_id": bad}), ("manifest.get", {"manifest_id": bad}),
                                   ("run.start", {"run_id": f"{self.run_id}.child", "agent": {"name": "t"}, "parent": {"run_id": bad}})):
                with self.subTest(bad=bad[:40], method=method):
                    answer = self.raw().ask(request(method, json.dumps(params)))
                    self.assertIn("error", answer, answer)
                    self.assertIn(answer["error"]["data"]["code"], ("invalid_argument", "not_found"), answer)
            for pointer in (f"artifact://{bad}/{artifact_id}", f"artifact://{self.run_id}/{bad}", f"run://{bad}", f"snap://{bad}/1"):
                with self.subTest(pointer=pointer[:60]):
                    answer = self.raw().ask(request("pointer.resolve", json.dumps({"pointers": [pointer]})))
                    results = answer.get("result", {"results": [{"ok": False}]})["results"]
                    self.assertFalse(results[0]["ok"], answer)
        self.assertEqual(self.client.get(artifact_id), b"kept")
        self.assert_alive()

    def test_any_json_value_may_be_an_id(self) -> None:
        raw = self.raw()
        for request_id in ('"abc"', "0", "-7", "9007199254740993", '"\\u00e9"'):
            answer = raw.ask(b'{"jsonrpc":"2.0","id":%s,"method":"server.health"}' % request_id.encode())
            self.assertEqual(answer["id"], json.loads(request_id))


class Lines(DaemonCase):
    shared = True

    def test_a_line_of_1_mib_is_read(self) -> None:
        # White space around a request is legal JSON, and this line has exactly the maximum length.
        line = request("server.health", "{}").ljust(MIB - 1)
        self.assertIn("result", self.raw().ask(line))

    def test_a_longer_line_is_refused_from_its_head(self) -> None:
        raw = self.raw()
        raw.send(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"a" * (MIB + 1))   # the line has no newline
        answer = raw.line()
        assert answer
        self.assertEqual(answer["error"]["data"]["code"], "too_large")
        self.golden("line_too_long", f"{answer['error']['message']}\n")
        self.assertTrue(raw.closed())
        self.assert_alive()

    def test_a_long_line_takes_no_memory(self) -> None:
        def resident() -> int:
            with open(f"/proc/{self.daemon.process.pid}/statm") as statm:
                return int(statm.read().split()[1]) * 4096

        before = resident()
        raw = self.raw()
        try:
            for _ in range(100):
                raw.send(b"a" * MIB)
        except OSError:
            pass   # refused and closed, as expected
        self.assertLess(resident() - before, 8 * MIB)
        self.assert_alive()

    def test_crlf_and_empty_lines_are_no_requests(self) -> None:
        raw = self.raw()
        raw.send(b"\n\r\n" + request("server.health", "{}") + b"\r\n")
        answer = raw.line()
        self.assertIn("result", answer)

    def test_a_request_may_come_byte_by_byte(self) -> None:
        raw = self.raw()
        for byte in request("server.health", "{}", 5) + b"\n":
            raw.send(bytes([byte]))
        self.assertEqual(raw.line()["id"], 5)

    def test_overlapping_requests_are_answered_by_id(self) -> None:
        raw = self.raw()
        lines = b"".join(request("event.append", '{"run_id":"%s","type":"x.test.a","body":{"i":%d}}' % (self.run_id, i), i) + b"\n"
                         for i in range(200))
        raw.send(lines)
        answers = {answer["id"]: answer["result"] for answer in (raw.line() for _ in range(200))}
        self.assertEqual(sorted(answers), list(range(200)))
        self.assertEqual(sorted(answer["run_seq"] for answer in answers.values()), list(range(1, 201)))
        # The appends of a connection are numbered in the order in which it sent them.
        self.assertEqual([answers[i]["run_seq"] for i in range(200)], list(range(1, 201)))

    def test_a_client_that_never_reads_is_bounded(self) -> None:
        raw = self.raw()
        raw.socket.settimeout(2)
        for i in range(50):
            self.note(text="a" * 8000)
        line = request("event.list", '{"run_id":"%s","limit":1000}' % self.run_id) + b"\n"
        try:
            for _ in range(5000):
                raw.send(line)
        except (OSError, TimeoutError):
            pass   # the daemon stopped reading or closed the connection
        with open(f"/proc/{self.daemon.process.pid}/statm") as statm:
            self.assertLess(int(statm.read().split()[1]) * 4096, 256 * MIB)
        self.assert_alive()


class Bodies(DaemonCase):
    """Raw bytes after a line must never be parsed as requests."""

    shared = True

    def put_line(self, size: int, request_id: int = 1, **more: object) -> bytes:
        return request("artifact.put", json.dumps({"run_id": self.run_id, "mime_type": "text/plain", "body_bytes": size, **more}),
                       request_id) + b"\n"

    def files(self) -> list[str]:
        return sorted(str(path) for path in (self.daemon.data / "artifacts").rglob("*") if path.is_file())

    def test_bytes_that_look_like_requests_are_bytes(self) -> None:
        raw = self.raw()
        inner = request("event.append", '{"run_id":"%s","type":"x.test.evil","body":{}}' % self.run_id, 99) + b"\n"
        raw.send(self.put_line(len(inner)) + inner)
        stored = raw.line()["result"]
        self.assertEqual(self.client.get(stored["artifact_id"]), inner)
        self.assertNotIn("x.test.evil", [event["type"] for event in self.events()])

    def test_the_bytes_of_a_refused_put_are_dropped(self) -> None:
        raw = self.raw()
        line = request("artifact.put", json.dumps({"run_id": "no-such-run", "mime_type": "text/plain", "body_bytes": 100_000})) + b"\n"
        raw.send(line + b"\n{}" * 33_333 + b"\n")
        self.assertEqual(raw.line()["error"]["data"]["code"], "not_found")
        self.assertIn("result", raw.ask(request("server.health", "{}")))

    def test_beyond_64_mib_a_refused_put_closes(self) -> None:
        raw = self.raw()
        raw.send(request("artifact.put", json.dumps({"run_id": "no-such-run", "mime_type": "text/plain", "body_bytes": 70 * MIB})) + b"\n")
        with contextlib.suppress(OSError):
            raw.send(b"a" * (2 * MIB))   # the daemon answers at the first of them
        self.assertEqual(raw.line()["error"]["data"]["code"], "not_found")
        try:
            raw.send(b"a" * MIB)
        except OSError:
            pass
        self.assertTrue(raw.closed())

    def test_wrong_body_bytes(self) -> None:
        for size, golden in ((-1, "body_bytes_negative"), (1 << 62, "body_bytes_huge")):
            with self.subTest(size=size):
                raw = self.raw()
                raw.send(self.put_line(size))
                with contextlib.suppress(OSError):
                    raw.send(b"a" * (2 * MIB))   # an excessive size is refused at the first bytes
                answer = raw.line()
                self.golden(golden, f"{answer['error']['message']}\n")
                self.assert_alive()

    def test_bytes_after_a_refused_line_are_never_requests(self) -> None:
        hidden = request("event.append", json.dumps({"run_id": self.run_id, "type": "x.test.hidden", "body": {}})) + b"\n"
        size = len(hidden)
        put = {"run_id": self.run_id, "mime_type": "text/plain", "body_bytes": size}
        envelope = {"jsonrpc": "2.0", "id": 1, "method": "artifact.put"}
        lines = [json.dumps({**envelope, "params": [put]}), json.dumps([{**envelope, "params": put}]), json.dumps({**envelope, "params": json.dumps(put)}),
                 json.dumps({**envelope, **put}), json.dumps({**envelope, "params": {}, "body_bytes": size}), json.dumps("body_bytes"),
                 '{"jsonrpc":"2.0","id":1,"method":"artifact.put","params":{"body\\u005fbytes":%d,}}' % size]
        for line in lines:
            with self.subTest(line=line):
                raw = self.raw()
                raw.send(line.encode() + b"\n" + hidden)
                self.assertEqual(raw.line()["error"]["data"]["code"], "invalid_argument")
                self.assertTrue(raw.closed())
        raw = self.raw()   # with an escape in its name, the member is still recognized
        raw.send(b'{"jsonrpc":"2.0","id":1,"method":"artifact.put","params":{"run_id":"%s","mime_type":"text/plain","body\\u005fbytes":%d}}\n' % (self.run_id.encode(), size) + hidden)
        self.assertIn("artifact_id", raw.line()["result"])
        self.assertEqual([event for event in self.events() if event["type"] == "x.test.hidden"], [])

    def test_an_unreadable_line_that_speaks_of_body_bytes_closes(self) -> None:
        raw = self.raw()
        raw.send(b'{"jsonrpc":"2.0","id":1,"method":"artifact.put","params":{"body_bytes":5,}}\n')
        self.assertIn("error", raw.line())
        self.assertTrue(raw.closed())

    def test_a_client_gone_in_mid_upload_leaves_no_file(self) -> None:
        before = self.files()
        raw = self.raw()
        raw.send(self.put_line(10 * MIB) + b"a" * (3 * MIB))
        wait_until(lambda: unread_bytes(raw) == 0, "the daemon has read what was sent")
        raw.socket.close()
        wait_until(lambda: self.files() == before, "the half file is gone")
        self.assertEqual(self.call("artifact.list", run_id=self.run_id)["artifacts"], [])
        self.assert_alive()

    def test_a_client_gone_in_a_resumable_upload_leaves_what_came(self) -> None:
        data = bytes(range(256)) * 40_960   # 10 MiB
        came = 100_000                      # below the amount for which a worker is used while more bytes are expected

        def send_and_leave(offset: int, end: int) -> None:
            raw = self.raw()
            raw.send(self.put_line(len(data) - offset, upload_id="../up", offset=offset) + data[offset:end])
            raw.socket.close()

        def held() -> int:
            return self.call("artifact.put", run_id=self.run_id, upload_id="../up")["offset"]

        send_and_leave(0, came)
        wait_until(lambda: held() == came, "the little that came is there")
        send_and_leave(came, 3 * MIB)
        wait_until(lambda: held() == 3 * MIB, "all that came is there")
        self.assertEqual(self.call("artifact.list", run_id=self.run_id)["artifacts"], [])

        def go_on() -> dict:
            offset = held()
            more = self.raw()
            more.send(self.put_line(len(data) - offset, mime_type="text/plain", upload_id="../up", offset=offset, final=True)
                      + data[offset:])
            return more.line()

        # The daemon may still be writing the first connection's bytes: it then answers with a conflict.
        answer = wait_until(lambda: (a := go_on()) and ("result" in a or a["error"]["data"]["code"] != "conflict") and a, "goes on")
        self.assertEqual(self.client.get(answer["result"]["artifact_id"]), data)
        self.assertEqual(len(self.call("artifact.list", run_id=self.run_id)["artifacts"]), 1)

    def test_more_bytes_than_were_said_are_no_part_of_it(self) -> None:
        raw = self.raw()
        raw.send(self.put_line(3) + b"byeXX\n")
        answers = [raw.line(), raw.line()]
        stored = next(answer["result"] for answer in answers if "result" in answer)
        refused = next(answer["error"] for answer in answers if "error" in answer)
        self.assertEqual((self.client.get(stored["artifact_id"]), refused["data"]["code"]), (b"bye", "invalid_argument"))

    def test_bytes_sent_twice_over(self) -> None:
        raw = self.raw()
        raw.send(self.put_line(5, text="other") + b"hello")
        self.golden("body_twice", f"{raw.line()['error']['message']}\n")
        self.assertIn("result", raw.ask(request("server.health", "{}")))

    def test_requests_sent_behind_a_body_are_answered(self) -> None:
        raw = self.raw()
        raw.send(self.put_line(5) + b"hello" + request("server.health", "{}", 2) + b"\n" + self.put_line(3, 3) + b"bye")
        answers = {answer["id"]: answer for answer in (raw.line() for _ in range(3))}
        self.assertEqual(answers[1]["result"]["size_bytes"], 5)
        self.assertEqual(answers[3]["result"]["size_bytes"], 3)
        self.assertIn("result", answers[2])

    def test_raw_answers_interleave_with_others(self) -> None:
        data = bytes(range(256)) * 16_384   # 4 MiB: at least five requests
        stored = self.client.put(self.run_id, data)
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(self.client.get(stored["artifact_id"])))
        reader.start()
        for _ in range(20):
            self.call("server.health")   # over the same connection
        reader.join()
        self.assertEqual(got, [data])


class Deadlines(DaemonCase):
    shared = True

    def test_a_deadline_out_of_range(self) -> None:
        for value, golden in ((0, "deadline_zero"), (600_001, "deadline_long"), ("soon", "deadline_kind")):
            with self.subTest(value=value), self.refused("invalid_argument", golden):
                self.call("server.health", _meta={"deadline_ms": value})

    def test_an_append_without_event_id_gets_one(self) -> None:
        receipt = self.call("event.append", run_id=self.run_id, type="x.test.a", body={})
        self.assertEqual(str(uuid.UUID(receipt["event_id"])), receipt["event_id"])

    def test_an_idempotency_key_names_the_event(self) -> None:
        first = self.call("event.append", run_id=self.run_id, type="x.test.a", body={"a": 1}, _meta={"idempotency_key": "k1"})
        again = self.call("event.append", run_id=self.run_id, type="x.test.a", body={"a": 1}, _meta={"idempotency_key": "k1"})
        self.assertEqual((again["seq"], again["event_id"], again["duplicate"]), (first["seq"], first["event_id"], True))
        with self.refused("conflict"):
            self.call("event.append", run_id=self.run_id, type="x.test.a", body={"a": 2}, _meta={"idempotency_key": "k1"})

    def test_an_idempotency_key_names_all_events_of_its_request(self) -> None:
        events = [{"type": "x.test.a", "body": {"n": number}} for number in range(3)]
        meta = {"idempotency_key": "k1"}
        first = self.call("event.append", run_id=self.run_id, events=events, _meta=meta)["receipts"]
        for fewer in (events[:2], events[:1]):
            with self.refused("conflict") as caught:
                self.call("event.append", run_id=self.run_id, events=fewer, _meta=meta)
            self.assertIn(f"this idempotency_key was used at seq {first[len(fewer)]['seq']} of run {self.run_id}", str(caught[0]))
        with self.refused("conflict"):
            self.call("event.append", run_id=self.run_id, **events[0], _meta=meta)
        with self.refused("conflict"):
            self.call("event.append", run_id=self.run_id, events=[*events, {"type": "x.test.a", "body": {}}], _meta=meta)
        again = self.call("event.append", run_id=self.run_id, events=events, _meta=meta)["receipts"]
        self.assertEqual(again, [{**receipt, "duplicate": True} for receipt in first])
        self.assertEqual(len(self.events()), 4)


if __name__ == "__main__":
    main()
