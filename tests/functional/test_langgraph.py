"""Tests of LangGraph graphs with MunimentSaver: a finished node does not run again, in every durability mode, after restarts and kills."""
from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

from langgraph_case import DURABILITIES, LangGraphCase
from support import BUILD, ROOT, main

PROGRAM = ROOT / "tests" / "langgraph" / "killed_graph.py"
PROCESS_S_MAX = 120


def questions(result: Any) -> list[Any]:
    return [one.value for one in result.get("__interrupt__", [])]


class Interrupts(LangGraphCase):
    shared = True

    def test_effects_beside_questions_happen_once(self) -> None:
        import graphs
        from langgraph.types import Command

        for durability in DURABILITIES:
            def scenario(new: Any, config: Any) -> Any:
                ran: list[str] = []
                builder, seen = graphs.questions_beside_effects(ran.append), []
                for step in ({"log": []}, Command(resume="A"), Command(resume="B")):
                    with new() as saver:
                        app = builder.compile(checkpointer=saver)
                        result = app.invoke(step, config, durability=durability)
                        state = app.get_state(config)
                        seen.append((questions(result), [one.value for one in state.interrupts], state.next))
                return sorted(ran), seen, sorted(result["log"])

            with self.subTest(durability=durability):
                ran, seen, log = self.as_in_memory(scenario, durability)
                self.assertEqual(ran, ["charge", "mail"])
                self.assertEqual(seen, [(["first?"], ["first?"], ("ask",)), (["second?"], ["second?"], ("ask",)), ([], [], ())])
                self.assertEqual(log, ["A", "B", "charge", "mail"])

    def test_an_approval_leads_to_one_charge_and_one_mail(self) -> None:
        import graphs
        from langgraph.types import Command

        for durability in DURABILITIES:
            def scenario(new: Any, config: Any) -> Any:
                ran: list[str] = []
                builder = graphs.approval(ran.append)
                with new() as saver:
                    asked = questions(builder.compile(checkpointer=saver).invoke({"log": []}, config, durability=durability))
                with new() as saver:
                    app = builder.compile(checkpointer=saver)
                    before = list(ran)
                    result = app.invoke(Command(resume="yes"), config, durability=durability)
                    again = app.invoke(None, config, durability=durability)
                return asked, before, ran, result, again

            with self.subTest(durability=durability):
                asked, before, ran, result, again = self.as_in_memory(scenario, durability)
                self.assertEqual((asked, before, ran), (["charge the card?"], [], ["charge", "mail"]))
                self.assertEqual((result, again), ({"value": "yes", "log": ["charge", "mail"]},) * 2)

    def test_a_question_in_a_subgraph(self) -> None:
        import graphs
        from langgraph.types import Command

        for durability in DURABILITIES:
            def scenario(new: Any, config: Any) -> Any:
                ran: list[str] = []
                builder = graphs.outer_and_inner(ran.append)
                with new() as saver:
                    builder.compile(checkpointer=saver).invoke({"log": []}, config, durability=durability)
                with new() as saver:
                    app = builder.compile(checkpointer=saver)
                    (task,) = app.get_state(config, subgraphs=True).tasks
                    inner = (task.name, task.state.next, task.state.values, task.state.config["configurable"]["checkpoint_ns"].split(":")[0])
                    result = app.invoke(Command(resume=7), config, durability=durability)
                return ran, inner, result

            with self.subTest(durability=durability):
                ran, inner, result = self.as_in_memory(scenario, durability)
                self.assertEqual(ran, ["charge", "mail"])
                self.assertEqual(inner, ("sub", ("ask",), {"log": ["charge"]}, "sub"))
                self.assertEqual(result["value"], 7)

    def test_asyncio(self) -> None:
        import graphs
        from langgraph.types import Command

        async def use(new: Any, config: Any, durability: str) -> Any:
            ran: list[str] = []
            builder = graphs.questions_beside_effects(ran.append)
            for step in ({"log": []}, Command(resume="A"), Command(resume="B")):
                with new() as saver:
                    app = builder.compile(checkpointer=saver)
                    result = await app.ainvoke(step, config, durability=durability)
                    state = await app.aget_state(config)
                    history = [one.metadata["step"] async for one in app.aget_state_history(config)]
            return sorted(ran), sorted(result["log"]), state.next, history

        for durability in DURABILITIES:
            with self.subTest(durability=durability):
                ran, log, following, _ = self.as_in_memory(lambda new, config: asyncio.run(use(new, config, durability)), durability)
                self.assertEqual((ran, log, following), (["charge", "mail"], ["A", "B", "charge", "mail"], ()))


class Tasks(LangGraphCase):
    shared = True

    def test_after_a_failure_only_the_failed_task_runs_again(self) -> None:
        """Tasks run in sequence and the last one fails: LangGraph discards unfinished tasks of a failed step."""
        import graphs

        for durability in DURABILITIES:
            def scenario(new: Any, config: Any) -> Any:
                config = {**config, "max_concurrency": 1}
                ran: list[str] = []
                failing = [True]
                builder = graphs.workers(ran.append, lambda number: failing[0] and number == 3)
                with new() as saver, self.assertRaises(ValueError):
                    builder.compile(checkpointer=saver).invoke({"log": []}, config, durability=durability)
                failing[0], first = False, len(ran)
                with new() as saver:
                    pending = sorted({channel for _, channel, _ in saver.get_tuple(config).pending_writes})
                    result = builder.compile(checkpointer=saver).invoke(None, config, durability=durability)
                return ran[:first], ran[first:], result["log"], pending

            with self.subTest(durability=durability):
                ran, again, log, pending = self.as_in_memory(scenario, durability)
                self.assertEqual(ran, [f"work {number}" for number in range(4)])
                self.assertEqual((again, log), (["work 3"], [0, 1, 2, 3]))
                self.assertEqual(pending, ["__error__", "log"])

    def test_a_hundred_tasks_side_by_side(self) -> None:
        import graphs

        def scenario(new: Any, config: Any) -> Any:
            ran: list[str] = []
            with new() as saver:
                app = graphs.workers(ran.append, count=100).compile(checkpointer=saver)
                app.invoke({"log": []}, config)
                return len(ran), app.get_state(config).values["log"]

        self.assertEqual(self.as_in_memory(scenario), (100, list(range(100))))

    def test_more_subgraphs_than_the_state_holds(self) -> None:
        """Each call of a subgraph has its own namespace; a run's state holds the newest ones."""
        import graphs

        with self.saver() as saver:
            app = graphs.outer_and_inner(lambda _: None).compile(checkpointer=saver)
            for _ in range(20):
                app.invoke({"log": []}, self.at())
            namespaces = {one.config["configurable"]["checkpoint_ns"] for one in saver.list(self.at())}
            history = [one.values for one in app.get_state_history(self.at())]
        self.assertEqual(len(namespaces), 21)
        self.assertEqual(len(history), len([one for one in history if "log" in one]))
        state = self.call("run.rehydrate", run_id=f"langgraph-{self.run_id}", path="/working/langgraph")["state"]
        self.assertEqual(len(state), 16)
        self.assertIn("ns:", state)


class TimeTravel(LangGraphCase):
    shared = True

    def test_history_fork_and_replay(self) -> None:
        import graphs

        for durability in DURABILITIES[:2]:
            def scenario(new: Any, config: Any) -> Any:
                ran: list[str] = []
                with new() as saver:
                    app = graphs.line(ran.append).compile(checkpointer=saver)
                    app.invoke({"log": ["in"]}, config, durability=durability)
                    history = list(app.get_state_history(config))
                    steps = [(one.metadata["step"], one.next, one.values["log"]) for one in history]
                    before_b = next(one for one in history if one.next == ("b",))
                    replayed = app.invoke(None, before_b.config, durability=durability)["log"]
                    forked = app.update_state(before_b.config, {"log": ["edited"]})
                    result = app.invoke(None, forked, durability=durability)["log"]
                with new() as saver:
                    app = graphs.line(ran.append).compile(checkpointer=saver)
                    now, old = app.get_state(config).values["log"], app.get_state(history[0].config).values["log"]
                    edits = [one.metadata["source"] for one in app.get_state_history(config, filter={"source": "update"})]
                    earlier = [one.config for one in app.get_state_history(config, before=history[0].config)]
                    limited = [one.metadata["step"] for one in app.get_state_history(config, limit=2)]
                return steps, ran, replayed, result, now, old, edits, len(earlier), limited

            with self.subTest(durability=durability):
                steps, ran, replayed, result, now, old, edits, earlier, _ = self.as_in_memory(scenario, durability)
                self.assertEqual([step for step, _, _ in steps], [3, 2, 1, 0, -1])
                self.assertEqual(ran, ["a", "b", "c", "b", "c", "b", "c"])
                self.assertEqual((replayed, result), (["in", "a", "b", "c"], ["in", "a", "edited", "b", "c"]))
                self.assertEqual((now, old, edits, earlier), (result, replayed, ["update"], 4))

    def test_delta_channels_also_after_pruning(self) -> None:
        import graphs

        for durability in DURABILITIES:
            def scenario(new: Any, config: Any) -> Any:
                with new() as saver:
                    app = graphs.delta().compile(checkpointer=saver)
                    for _ in range(8):
                        app.invoke({"log": ["in"]}, config, durability=durability)
                    return [one.values.get("log", []) for one in app.get_state_history(config)]

            with self.subTest(durability=durability), self.saver() as saver:
                history, config = self.as_in_memory(scenario, durability), self.at(durability)
                saver.prune([config["configurable"]["thread_id"]])
                app = graphs.delta().compile(checkpointer=saver)
                self.assertEqual(app.get_state(config).values["log"], history[0])
                self.assertLess(len(list(saver.list(config))), len(history))
                self.assertEqual(app.invoke({"log": ["in"]}, config)["log"], [*history[0], "in", len(history[0]) + 1])


class Shown(LangGraphCase):
    def timeline(self, config: Any) -> list[str]:
        """Returns the starts and ends of nodes, and of the run, in order."""
        run_id = f"langgraph-{config['configurable']['thread_id']}"
        names: dict[str, str] = {}
        lines = []
        for event in self.call("event.list", run_id=run_id, types=["step.*", "run.*"], limit=1000)["events"]:
            body, step = event["body"], event.get("step_id", "")
            if event["type"] == "step.started":
                names[step] = body["name"]
                self.assertEqual(body["kind"], "node")
                lines.append(f"{body['name']} {body.get('attempt', 1)}")
            elif event["type"] == "step.ended":
                lines.append(f"{names[step]} {body['status']}")
            else:
                lines.append(f"{event['type']} {body['outcome']}" if event["type"] == "run.ended" else event["type"])
        return lines

    def assert_nodes(self, lines: list[str], nodes: list[str]) -> None:
        """Checks the lines of each node, and that the run has ended. LangGraph stores writes and checkpoints in several threads: the
        start of a node may be in the log before the end of its predecessor."""
        def by_node(some: list[str]) -> dict[str, list[str]]:
            return {name: [line for line in some if line.split()[0] == name] for name in ("approve", "charge", "mail", "run.interrupted")}
        self.assertEqual(by_node(lines), by_node(nodes))
        self.assertEqual((lines[0], lines[-1]), ("run.started", "run.ended success"))


class Steps(Shown):
    shared = True

    def test_nodes_are_steps_and_the_run_ends_with_the_graph(self) -> None:
        import graphs
        from langgraph.types import Command

        config = self.at()
        with self.saver() as saver:
            graphs.approval(lambda _: None).compile(checkpointer=saver).invoke({"log": []}, config, durability="sync")
        asked = self.timeline(config)
        self.assertEqual(asked, ["run.started", "approve 1"], "it waits for an answer, so the run is open")
        with self.saver() as saver:
            app = graphs.approval(lambda _: None).compile(checkpointer=saver)
            app.invoke(Command(resume="yes"), config, durability="sync")
            done = self.timeline(config)
            self.assert_nodes(done, ["approve 1", "approve ok", "charge 1", "charge ok", "mail 1", "mail ok"])
            app.get_state(config)
            app.invoke(None, config, durability="sync")
            self.assertEqual(self.timeline(config), done, "nothing is left to do")
        with self.saver() as saver:
            graphs.approval(lambda _: None).compile(checkpointer=saver).invoke({"log": []}, config, durability="sync")
        self.assertEqual(self.timeline(config), [*done, "run.resumed", "approve 1"])

    def test_in_every_durability_the_run_ends_and_no_step_stays_open(self) -> None:
        import graphs

        for durability in DURABILITIES:
            with self.subTest(durability=durability), self.saver() as saver:
                config = self.at(durability)
                for _ in range(3):
                    graphs.workers(lambda _: None).compile(checkpointer=saver).invoke({"log": []}, config, durability=durability)
                lines = self.timeline(config)
                self.assertEqual(lines[-1], "run.ended success")
                self.assertEqual(self.call("run.get", run_id=f"langgraph-{config['configurable']['thread_id']}")["run"]["status"], "ended")
                self.assertEqual(sum(line.endswith(" ok") for line in lines), sum(line.endswith(" 1") for line in lines), lines)

    def test_simultaneous_writes_to_a_finished_thread_are_all_stored(self) -> None:
        from muniment.checkpoint_threads import CHECKPOINT, WRITES, Threads, run_of

        client = self.daemon.client()
        self.addCleanup(client.close)
        threads, thread = Threads(client, "coder"), self.run_id
        end = {"type": CHECKPOINT, "body": {"ns": "", "id": "1", "parent": None, "end": True}}
        threads.write(thread, lambda run_id: threads.append(run_id, [end]), ends=True)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            written = [pool.submit(threads.write, thread, lambda run_id, n=n: threads.append(run_id, [{"type": WRITES, "body": {"n": n}}]),
                                   ends=True) for n in range(80)]
        for one in written:
            one.result()
        events = self.events(run_of(thread))
        self.assertEqual(sorted(event["body"]["n"] for event in events if event["type"] == WRITES), list(range(80)))
        self.assertEqual(events[-1]["type"], "run.ended")

    def test_a_node_that_failed_runs_again_as_its_next_attempt(self) -> None:
        import graphs

        failing = [True]
        config = {**self.at(), "max_concurrency": 1}
        builder = graphs.workers(lambda _: None, lambda number: failing[0] and number == 3)
        with self.saver() as saver, self.assertRaises(ValueError):
            builder.compile(checkpointer=saver).invoke({"log": []}, config, durability="sync")
        failed = self.timeline(config)
        name, = [line.split()[0] for line in failed if line.endswith(" error")]
        self.assertNotIn("run.ended success", failed)
        failing[0] = False
        with self.saver() as saver:
            builder.compile(checkpointer=saver).invoke(None, config, durability="sync")
        again = [line for line in self.timeline(config)[len(failed):] if line.split()[0] == name]
        self.assertEqual(again[:2], [f"{name} 2", f"{name} ok"])


class Kills(Shown):
    """The graph's process, or the daemon, is killed between the approval and the end."""

    def setUp(self) -> None:
        super().setUp()
        self.effects_path = self.folder / "effects"

    def effects(self) -> list[str]:
        return sorted(self.effects_path.read_text().split()) if self.effects_path.exists() else []

    def process(self, graph: str, step: str, durability: str, kill: str = "") -> Any:
        """Runs one process of the graph. Returns its output, or None if it was to kill itself."""
        settings = {"socket": self.daemon.socket, "thread": f"{self.run_id}-{durability}", "effects": str(self.effects_path), "graph": graph,
                    "step": step, "durability": durability, "kill": kill}
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": self.python_path()}
        done = subprocess.run([sys.executable, str(PROGRAM), json.dumps(settings)], env=env, capture_output=True, text=True, timeout=PROCESS_S_MAX,
                              check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL if kill else 0, done.stdout + done.stderr)
        return None if kill else json.loads(done.stdout.splitlines()[-1])

    def crash_of_the_daemon(self) -> None:
        self.daemon.kill()
        self.restart()

    def test_after_the_question(self) -> None:
        for durability in DURABILITIES:
            with self.subTest(durability=durability):
                self.effects_path.unlink(missing_ok=True)
                self.process("beside", "start", durability, kill="end")
                self.assertEqual(self.effects(), ["charge", "mail"])
                self.crash_of_the_daemon()
                self.process("beside", "resume", durability, kill="end")
                found = self.process("beside", "resume", durability)
                self.assertEqual(found, {"log": ["charge", "mail", "yes", "yes"], "questions": [], "next": []})
                self.assertEqual(self.effects(), ["charge", "mail"])

    def test_between_the_charge_and_the_mail(self) -> None:
        for durability in DURABILITIES[:2]:   # "exit" stores nothing before the end
            with self.subTest(durability=durability):
                self.effects_path.unlink(missing_ok=True)
                self.assertEqual(self.process("approval", "start", durability)["questions"], ["charge the card?"])
                self.process("approval", "resume", durability, kill="mail")
                self.assertEqual(self.effects(), ["charge"])
                self.crash_of_the_daemon()
                self.assertEqual(self.process("approval", "continue", durability), {"log": ["charge", "mail"], "questions": [], "next": []})
                self.assertEqual(self.effects(), ["charge", "mail"])
                if durability == "async":   # the checkpoint that names the node may not be in the log when the process is killed
                    continue
                self.assert_nodes(self.timeline(self.at("-sync")), ["approve 1", "approve ok", "charge 1", "charge ok", "mail 1",
                                                                    "run.interrupted", "mail 2", "mail ok"])
                shown = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "run", "show", f"langgraph-{self.run_id}-sync"],
                                       capture_output=True, text=True, timeout=PROCESS_S_MAX, check=True).stdout
                self.assertIn("↻ mail continues after the interruption attempt 2", shown)


class Documented(LangGraphCase):
    """docs/recording.md, LangGraph: the example prints the documented output, and the versions are the pinned ones."""

    shared = True

    def section(self) -> str:
        text = (ROOT / "docs" / "recording.md").read_text()
        return text.split("\n## LangGraph\n")[1].split("\n## ")[0]

    def test_the_example(self) -> None:
        program, shown = re.findall(r"^```(?:python)?\n(.*?)^```$", self.section(), re.MULTILINE | re.DOTALL)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": self.python_path(), "MUNIMENT_DATA": str(self.daemon.data)}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=PROCESS_S_MAX, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, shown), done.stderr)
        types = {event["type"] for event in self.events("langgraph-order-7")}
        types -= {"run.started", "snapshot.taken"}
        types.discard("run.resumed")   # the last writes may be stored after the last checkpoint, which ends the run
        self.assertEqual(types, {"run.ended", "state.patched", "step.started", "step.ended", "x.langgraph.checkpoint", "x.langgraph.writes"})
        for name in types:
            self.assertIn(f"| `{name}` |", self.section())

    def test_the_program_of_the_readme(self) -> None:
        commands = re.findall(r"^\$ python3 (scripts/examples/langgraph_agent.py)(.*)\n([^$`]*)", (ROOT / "README.md").read_text(), re.MULTILINE)
        self.assertEqual(len(commands), 2)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": self.python_path(), "MUNIMENT_DATA": str(self.daemon.data)}
        for program, answer, shown in commands:
            done = subprocess.run([sys.executable, ROOT / program, *answer.split()], env=env, capture_output=True, text=True,
                                  timeout=PROCESS_S_MAX, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, shown), done.stderr)

    def test_the_versions(self) -> None:
        pins = dict(line.split()[0].split("==") for line in (ROOT / "tests" / "langgraph" / "requirements.txt").read_text().splitlines()[1:])
        for name in ("langgraph", "langgraph-checkpoint"):
            self.assertRegex(self.section(), rf"`{name}`\s{re.escape(pins[name])}")


if __name__ == "__main__":
    main()
