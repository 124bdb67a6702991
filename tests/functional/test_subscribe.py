"""Tests of subscriptions: from any position, first existing events, then new ones; without gaps, duplicates or reordering."""
from __future__ import annotations

import queue
import threading

from support import DaemonCase, main


class Subscriptions(DaemonCase):
    def write(self, count: int, run_id: str | None = None) -> None:
        with self.daemon.client() as client:
            for i in range(count):
                client.append(run_id or self.run_id, "x.test.noted", {"i": i})

    def test_what_is_there_then_caught_up(self) -> None:
        self.write(10)
        seen = list(self.client.subscribe(0, run_id=self.run_id, until_caught_up=True))
        self.assertEqual([event["run_seq"] for event in seen], list(range(11)))

    def test_no_gap_from_any_seq_under_load(self) -> None:
        self.write(300)
        size = self.call("server.status")["log"]["size"]
        stop = threading.Event()

        def load() -> None:
            with self.daemon.client() as client:
                while not stop.is_set():
                    client.append_all(self.run_id, [{"type": "x.test.noted", "body": {}} for _ in range(7)])

        writers = [threading.Thread(target=load) for _ in range(3)]
        for writer in writers:
            writer.start()
        try:
            for start in (0, 1, size // 2, size - 1, size, size + 50):
                with self.subTest(start=start):
                    want = start
                    for event in self.client.subscribe(start):
                        self.assertEqual(event["seq"], want)
                        want += 1
                        if want >= size + 600:
                            break
        finally:
            stop.set()
            for writer in writers:
                writer.join()

    def test_a_run_and_types(self) -> None:
        other = self.new_run("other")
        self.write(5)
        self.write(5, other)
        self.client.append(self.run_id, "x.test.special", {})
        seen = list(self.client.subscribe(0, run_id=self.run_id, types=["x.test.spec*"], until_caught_up=True))
        self.assertEqual([event["type"] for event in seen], ["x.test.special"])

    def test_a_run_that_the_daemon_does_not_hold_in_memory(self) -> None:
        self.write(3)
        self.assertEqual(self.daemon.stop(), 0)
        self.restart()
        seen = list(self.client.subscribe(0, run_id=self.run_id, until_caught_up=True))
        self.assertEqual([event["run_seq"] for event in seen][:4], [0, 1, 2, 3])

    def test_live_events_arrive_at_once(self) -> None:
        """An event that arrived only with the next keep_alive would take much longer."""
        raw = self.raw()
        raw.request("event.subscribe", 1, run_id=self.run_id)
        self.assertIn("subscription", raw.line()["result"])
        self.assertEqual(raw.line()["method"], "caught_up")
        kept_alive = 0
        for n in range(10):
            receipt = self.note(n=n)
            while (message := raw.line())["method"] == "keep_alive":
                kept_alive += 1
            self.assertEqual((message["method"], message["params"]["event"]["seq"]), ("event", receipt["seq"]))
        self.assertLess(kept_alive, 9)

    def test_unsubscribe(self) -> None:
        raw = self.raw()
        raw.request("event.subscribe", 1, run_id=self.run_id)
        subscription = raw.line()["result"]["subscription"]
        self.assertEqual(raw.line()["method"], "caught_up")
        raw.request("event.unsubscribe", 2, subscription=subscription)
        self.assertIn("result", raw.line())
        self.note(a=1)
        raw.request("server.health", 3)
        self.assertEqual(raw.line().get("id"), 3)

    def test_a_subscriber_goes_on_over_a_crash(self) -> None:
        got: queue.Queue[int] = queue.Queue()

        def follow() -> None:
            for event in self.client.subscribe(0, run_id=self.run_id):
                got.put(event["run_seq"])
                if event["run_seq"] == 40:
                    return

        reader = threading.Thread(target=follow)
        reader.start()
        self.write(20)
        self.daemon.kill()
        self.restart()
        self.write(20)
        reader.join()
        self.assertEqual([got.get_nowait() for _ in range(got.qsize())], list(range(41)))

    def test_subscribers_that_leave_while_events_are_sent_to_them(self) -> None:
        for _ in range(4):
            self.client.append_all(self.run_id, [{"type": "x.test.noted", "body": {"text": "a" * 4000}}] * 64, spill=False)
        for _ in range(30):
            raw = self.raw()
            for number in range(3):
                raw.request("event.subscribe", number, from_seq=0)
            raw.line()
            raw.socket.close()
            self.note(left=True)
        self.assertEqual(self.daemon.process.poll(), None)

    def test_a_subscriber_that_does_not_read_holds_nobody_up(self) -> None:
        raw = self.raw()
        raw.request("event.subscribe", 1, from_seq=0)
        body = {"text": "a" * 8000}
        for _ in range(30):
            self.client.append_all(self.run_id, [{"type": "x.test.noted", "body": body} for _ in range(64)], spill=False)
        with open(f"/proc/{self.daemon.process.pid}/statm") as statm:
            resident_bytes = int(statm.read().split()[1]) * 4096
        if not self.daemon.sanitized():
            self.assertLess(resident_bytes, 192 << 20)
        # It then reads the missed events: none were dropped.
        seqs = []
        last = self.note(last=True)["seq"]
        while not seqs or seqs[-1] < last:
            message = raw.line()
            assert message, "closed"
            if message.get("method") == "event":
                seqs.append(message["params"]["event"]["seq"])
        self.assertEqual(seqs, list(range(seqs[0], last + 1)))


if __name__ == "__main__":
    main()
