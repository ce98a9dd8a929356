"""Each framework's module, against the real server: what waits for a reviewer, what is refused, and what is imported when."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import unittest
from typing import TypedDict
from unittest import mock

from frameworks import use
from world import ROOT, World

sys.path.append(str(ROOT / "threads"))
import readback  # noqa: E402
import readback.adk  # noqa: E402
import readback.crewai  # noqa: E402
import readback.langgraph  # noqa: E402
import readback.openai_agents  # noqa: E402
import readback.pydantic_ai  # noqa: E402
import scripted  # noqa: E402
from shop import post  # noqa: E402

ORDER = {"destination": "orders", "kind": "order", "key": ["order_id"]}
CHARGE = {**ORDER, "operation": "charge:{order_id}"}


def charge_card(order_id: str, amount_cents: int):
    """Charges for an order."""


def by_hand(order_id: str, amount_cents: int):
    """Charges for an order, when a reviewer has approved it."""


def setUpModule():
    global world, environment
    world = World("risk:\n  - {name: by hand, tool: by_hand}\n")
    environment = mock.patch.dict(os.environ, READBACK_URL=world.url, READBACK_TOKEN=world.token, SHOP_URL=world.shop)
    environment.start()


def tearDownModule():
    environment.stop()
    world.close()


def reviewer():
    return readback.Client(world.url, world.make_token("reviewer"))


def decide(id, decision="approve"):
    reviewer().decide(id, decision, "I read the order")


class Case(unittest.TestCase):
    framework = None

    @classmethod
    def setUpClass(cls):
        if cls.framework:
            use(cls.framework)

    def setUp(self):
        world.faults("lost-answer,op=create,times=1")
        self.order = "-".join(self.id().split(".")[-2:])

    def effects(self, order=None):
        return len(world.effects().get(order or self.order, []))


class LangGraph(Case):
    framework = "langgraph"

    def graph(self, node, name="charge", retry_policy=None, **compiled):
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import END, START, StateGraph

        class State(TypedDict, total=False):
            status: str
            replayed: bool

        builder = StateGraph(State)
        builder.add_node(name, node, retry_policy=retry_policy)
        builder.add_edge(START, name)
        builder.add_edge(name, END)
        return builder.compile(**(compiled or {"checkpointer": InMemorySaver()})), {"configurable": {"thread_id": "job-" + self.order}}

    def test_a_reviewer_decides(self):
        from langgraph.types import Command
        ask = readback.langgraph.verified(**ORDER)(by_hand)
        graph, config = self.graph(lambda state: {"status": ask(self.order, 1999).status})
        shown = graph.invoke({}, config)["__interrupt__"][0].value
        self.assertEqual(shown["status"], "held")
        for early in Command(resume=True), None:
            self.assertIn("__interrupt__", graph.invoke(early, config), "it was resumed too early")
        self.assertEqual(self.effects(), 0)
        decide(shown["write"])
        self.assertEqual(graph.invoke(None, config)["status"], "verified")
        self.assertEqual(self.effects(), 1)

    def test_a_graph_that_continues_without_a_value_answers_no_question(self):
        from langgraph.types import Command, interrupt
        ask, answers = readback.langgraph.verified(**ORDER)(by_hand), []

        def node(state):
            ask(self.order, 1999)
            answers.append(interrupt("Delete the customer?"))
            return {"status": "done"}

        graph, config = self.graph(node)
        decide(graph.invoke({}, config)["__interrupt__"][0].value["write"])
        self.assertEqual(graph.invoke(None, config)["__interrupt__"][0].value, "Delete the customer?")
        self.assertEqual(graph.invoke(Command(resume="no"), config)["status"], "done")
        self.assertEqual((answers, self.effects()), (["no"], 1))

    def test_an_outcome_that_is_not_verified_is_raised(self):
        world.faults(f"refused,op=create,key={self.order}")
        ask = readback.langgraph.verified(**ORDER)(charge_card)
        graph, config = self.graph(lambda state: {"status": ask(self.order, 1999).status})
        with self.assertRaises(readback.NotVerified) as e:
            graph.invoke({}, config)
        self.assertEqual((e.exception.outcome.status, self.effects()), ("not_applied", 0))

    def test_a_thread_that_begins_again(self):
        ask = readback.langgraph.verified(**ORDER)(charge_card)
        amount = [1999]

        def charge(state):
            outcomes = [ask(order, amount[0]) for order in (self.order, self.order + "-2")]
            return {"status": outcomes[1].status, "replayed": outcomes[1].replayed}

        graph, config = self.graph(charge)
        self.assertEqual(graph.invoke({}, config)["replayed"], False)
        self.assertEqual(graph.invoke({}, config)["replayed"], True)
        amount[0] = 2999
        with self.assertRaises(readback.Refused):
            graph.invoke({}, config)
        self.assertEqual((self.effects(), self.effects(self.order + "-2")), (1, 1))

    def test_a_node_that_is_retried(self):
        from langgraph.types import RetryPolicy
        ask, failures = readback.langgraph.verified(**ORDER)(charge_card), [True, True]

        def charge(state):
            for order in self.order, self.order + "-2":
                ask(order, 1999)
                if failures and failures.pop():
                    raise ConnectionError("another service is away")
            return {"status": "done"}

        graph, config = self.graph(charge, retry_policy=RetryPolicy(initial_interval=0.01))
        self.assertEqual(graph.invoke({}, config)["status"], "done")
        self.assertEqual((self.effects(), self.effects(self.order + "-2")), (1, 1))

    def test_an_async_node(self):
        async def wanted(order_id: str, amount_cents: int):
            """Charges for an order."""

        ask = readback.langgraph.verified(tool="charge_card", **ORDER)(wanted)

        async def charge(state):
            outcomes = [await ask(self.order, 1999), *await asyncio.gather(*(ask(f"{self.order}-{i}", 1999) for i in (2, 3)))]
            return {"status": " ".join(outcome.status for outcome in outcomes)}

        graph, config = self.graph(charge)
        self.assertEqual(asyncio.run(graph.ainvoke({}, config))["status"], "verified verified verified")
        self.assertEqual((self.effects(), self.effects(self.order + "-2"), self.effects(self.order + "-3")), (1, 1, 1))

    def test_a_graph_within_a_node(self):
        ask = readback.langgraph.verified(**ORDER)(charge_card)
        inner, _ = self.graph(lambda state: {"status": ask(self.order + "-2", 1999).status}, "inner", checkpointer=None)

        def charge(state):
            ask(self.order, 1999)
            return {"status": inner.invoke({})["status"]}

        graph, config = self.graph(charge)
        self.assertEqual(graph.invoke({}, config)["status"], "verified")
        self.assertEqual({w["step"] for w in reviewer().writes(workflow="job-" + self.order)}, {"charge", "inner"})

    def test_without_a_thread(self):
        ask = readback.langgraph.verified(**ORDER)(charge_card)
        with self.assertRaises(RuntimeError):  # not in a node
            ask(self.order, 1999)
        graph, config = self.graph(lambda state: {"status": ask(self.order, 1999).status})
        with self.assertRaises(ValueError):
            graph.invoke({}, {"configurable": {"thread_id": ""}})
        self.assertEqual(self.effects(), 0)

    def test_a_tool_of_a_model(self):
        charge, held = (readback.langgraph.tool(**CHARGE)(f) for f in (charge_card, by_hand))
        given = {"order_id": self.order, "amount_cents": 1999}
        got = [json.loads(charge.invoke(given)) for _ in range(2)]
        self.assertEqual([(g["verified"], g["id"]) for g in got], [(True, got[0]["id"])] * 2)
        self.assertEqual(json.loads(charge.invoke({**given, "amount_cents": 2999}))["status"], "refused")
        self.assertEqual(self.effects(), 1)
        graph, config = self.graph(lambda state: {"status": held.invoke({**given, "order_id": self.order + "-2"})})
        decide(graph.invoke({}, config)["__interrupt__"][0].value["write"], "deny")
        self.assertEqual(json.loads(graph.invoke(None, config)["status"])["status"], "denied")
        self.assertEqual(self.effects(self.order + "-2"), 0)


class OpenAIAgents(Case):
    framework = "agents"

    def agent(self, tool, script=None, **more):
        from agents import Agent, set_tracing_disabled
        set_tracing_disabled(True)
        self.script = script or scripted.Script([self.order])
        return Agent(name="clerk", model=scripted.openai_model(self.script, tool.name), tools=[tool], **more)

    def run_agent(self, agent, input="go", **more):
        from agents import Runner
        return asyncio.run(Runner.run(agent, input, **more))

    def test_a_reviewer_decides(self):
        agent = self.agent(readback.openai_agents.tool(**CHARGE)(by_hand), tool_use_behavior=readback.openai_agents.stop_for_reviewer)
        stopped = self.run_agent(agent)
        held = json.loads(stopped.final_output)
        self.assertEqual((held["status"], self.script.calls), ("held", 1))
        decide(held["id"])
        self.script.begin()
        done = self.run_agent(agent, stopped.to_input_list() + [{"role": "user", "content": "The reviewer has decided."}])
        self.assertEqual(done.final_output, "done")
        self.assertTrue(json.loads(self.script.results[-1])["verified"])
        self.assertEqual(self.effects(), 1)

    def test_a_saved_state_is_resumed_twice(self):
        from agents import RunState, function_tool

        @function_tool
        def plain(order_id: str, amount_cents: int) -> str:
            """Charges for an order."""
            return post(order_id, amount_cents)

        world.faults()
        for order, tool, want in (self.order + "-plain", plain, 2), (self.order, readback.openai_agents.tool(**CHARGE)(charge_card), 1):
            tool.needs_approval = True
            agent = self.agent(tool, scripted.Script([order]))
            saved = json.loads(json.dumps(self.run_agent(agent, context={"run": "run-7"}).to_state().to_json()))
            self.assertEqual(self.effects(order), 0)
            for _ in range(2):
                self.script.begin()

                async def resumed():
                    state = await RunState.from_json(agent, saved)
                    for item in state.get_interruptions():
                        state.approve(item)
                    return state
                self.run_agent(agent, asyncio.run(resumed()))
            self.assertEqual(self.effects(order), want)

    def test_a_run_with_a_name(self):
        tool = readback.openai_agents.tool(workflow=lambda c: c.context["run"], **CHARGE)(charge_card)
        ids = set()
        for run in "first", "second":
            self.run_agent(self.agent(tool), context={"run": f"{self.order}-{run}"})
            got = json.loads(self.script.results[-1])
            self.assertTrue(got["verified"], got)
            ids.add(got["id"])
        written, = reviewer().writes(workflow=f"{self.order}-first")
        self.assertEqual((written["step"], ids), (f"charge:{self.order}", {written["id"]}))
        self.assertEqual(self.effects(), 1)

    def test_another_amount_is_refused(self):
        tool = readback.openai_agents.tool(**CHARGE)(charge_card)
        for amount in 1999, 2999:
            self.run_agent(self.agent(tool, scripted.Script([self.order], amount)))
        self.assertEqual(json.loads(self.script.results[-1])["status"], "refused")
        self.assertEqual(self.effects(), 1)

    def test_calls_at_once(self):
        from agents.tool_context import ToolContext
        tool = readback.openai_agents.tool(**CHARGE)(charge_card)
        given = [json.dumps({"order_id": order, "amount_cents": 1999}) for order in [self.order] * 8 + [self.order + "-2"] * 8]

        async def calls():
            contexts = [ToolContext(None, tool_name=tool.name, tool_call_id=f"call_{i}", tool_arguments=g) for i, g in enumerate(given)]
            return await asyncio.gather(*(tool.on_invoke_tool(c, g) for c, g in zip(contexts, given)))

        got = [json.loads(result) for result in asyncio.run(calls())]
        self.assertEqual((len({g["id"] for g in got}), {g["verified"] for g in got}), (2, {True}))
        self.assertEqual((self.effects(), self.effects(self.order + "-2")), (1, 1))

    def test_a_value_that_no_request_can_have(self):
        self.run_agent(self.agent(readback.openai_agents.tool(**CHARGE)(charge_card), scripted.Script(["A\u20111"])))
        self.assertEqual(json.loads(self.script.results[-1])["status"], "refused")

    def test_the_server_is_away(self):
        client = readback.AsyncClient("http://127.0.0.1:9", "rbk_x", patience=0)
        self.run_agent(self.agent(readback.openai_agents.tool(client=client, **CHARGE)(charge_card)))
        self.assertEqual(json.loads(self.script.results[-1])["status"], "not_known")


class CrewAI(Case):
    framework = "crewai"

    def test_the_same_amount_in_other_words(self):
        tool = readback.crewai.tool(**CHARGE)(charge_card)
        got = [json.loads(tool.run(order_id=self.order, amount_cents=amount)) for amount in (1999, "1999", 1999.0)]
        self.assertEqual([(g["verified"], g["id"]) for g in got], [(True, got[0]["id"])] * 3)
        for order, amount in (self.order, 2999), ("A\u20111", 1999):
            self.assertEqual(json.loads(tool.run(order_id=order, amount_cents=amount))["status"], "refused")
        self.assertEqual(self.effects(), 1)

    def test_a_reviewer_decides(self):
        tool = readback.crewai.tool(**CHARGE)(by_hand)
        held = json.loads(tool.run(order_id=self.order, amount_cents=1999))
        self.assertEqual(held["status"], "held")
        self.assertFalse(tool.cache_function({}, ""), "CrewAI would give the held outcome again")
        decide(held["id"])
        self.assertEqual(json.loads(tool.run(order_id=self.order, amount_cents=1999))["status"], "verified")
        self.assertEqual(self.effects(), 1)

    def test_within_a_workflow_of_the_program(self):
        rb = readback.Client()
        tool = readback.crewai.tool(client=rb, **CHARGE)(charge_card)
        orders = [self.order, self.order + "-2"]
        for again in orders, orders[::-1]:  # a count would mix them up
            with rb.workflow("crew-7"):
                for order in again:
                    self.assertTrue(json.loads(tool.run(order_id=order, amount_cents=1999))["verified"])
        self.assertEqual([self.effects(order) for order in orders], [1, 1])


class PydanticAI(Case):
    framework = "pydantic_ai"

    def test_a_reviewer_decides(self):
        from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
        for decision, want in ("approve", "verified"), ("deny", "denied"):
            order = f"{self.order}-{decision}"
            script = scripted.Script([order])
            agent = Agent(scripted.pydantic_model(script, "by_hand"), tools=[readback.pydantic_ai.tool(**CHARGE)(by_hand)],
                          output_type=[str, DeferredToolRequests])
            got = asyncio.run(agent.run("go"))
            for last in False, True:
                waiting, = got.output.approvals
                shown = got.output.metadata[waiting.tool_call_id]
                self.assertEqual(shown["status"], "held")
                if last:
                    decide(shown["write"], decision)
                got = asyncio.run(agent.run(message_history=got.all_messages(),
                                            deferred_tool_results=DeferredToolResults(approvals={waiting.tool_call_id: True})))
            self.assertEqual(got.output, "done")
            self.assertIn(want, script.results[-1])
            self.assertEqual(self.effects(order), int(want == "verified"))

    def test_a_run_with_a_name(self):
        from pydantic_ai import Agent
        tool = readback.pydantic_ai.tool(workflow=lambda c: c.deps["run"], **CHARGE)(charge_card)
        script = scripted.Script([self.order])
        asyncio.run(Agent(scripted.pydantic_model(script, "charge_card"), tools=[tool], deps_type=dict).run("go", deps={"run": self.order}))
        written, = reviewer().writes(workflow=self.order)
        self.assertEqual((written["step"], written["status"]), (f"charge:{self.order}", "verified"))
        self.assertEqual(self.effects(), 1)


    def test_calls_at_once(self):
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel
        got = []

        def model(messages, info):
            last = messages[-1].parts
            if last[0].part_kind != "tool-return":
                orders = [self.order] * 3 + [self.order + "-2"]
                return ModelResponse(parts=[ToolCallPart("charge_card", {"order_id": order, "amount_cents": 1999}, f"call_{i}")
                                            for i, order in enumerate(orders)])
            got.extend(part.content for part in last)
            return ModelResponse(parts=[TextPart("done")])

        asyncio.run(Agent(FunctionModel(model), tools=[readback.pydantic_ai.tool(**CHARGE)(charge_card)]).run("go"))
        self.assertEqual(([g["verified"] for g in got], len({g["id"] for g in got[:3]})), ([True] * 4, 1))
        self.assertEqual((self.effects(), self.effects(self.order + "-2")), (1, 1))


class ADK(Case):
    framework = "google.adk"

    def agent(self, tool, **more):
        from google.adk.agents import Agent
        from google.adk.runners import InMemoryRunner
        self.script = scripted.Script([self.order])
        self.runner = InMemoryRunner(Agent(name="clerk", model=scripted.adk_model(self.script, tool.name), tools=[tool], **more), app_name="shop")
        self.session = asyncio.run(self.runner.session_service.create_session(app_name="shop", user_id="ada", state={"run": self.order}))

    def send(self, **part):
        from google.genai import types

        async def events():
            message = types.Content(role="user", parts=[types.Part(**part)])
            return [event async for event in self.runner.run_async(user_id="ada", session_id=self.session.id, new_message=message)]

        return asyncio.run(events())

    def confirmation(self, events):
        return next(call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation")

    def confirm(self, events):
        from google.genai import types
        asked = self.confirmation(events)
        return self.send(function_response=types.FunctionResponse(name=asked.name, id=asked.id, response={"confirmed": True}))

    def test_a_reviewer_decides(self):
        self.agent(readback.adk.tool(**CHARGE)(by_hand))
        events = self.send(text="go")
        events = self.confirm(events)  # too early
        shown = self.confirmation(events).args["toolConfirmation"]["payload"]
        self.assertEqual((shown["status"], self.effects()), ("held", 0))
        decide(shown["write"])
        responses = [r for event in self.confirm(events) for r in event.get_function_responses()]
        self.assertEqual([r.response["verified"] for r in responses], [True])
        self.assertEqual(self.effects(), 1)

    def test_calls_at_once(self):
        from google.adk.models import BaseLlm, LlmResponse
        from google.genai import types
        self.agent(readback.adk.tool(**CHARGE)(charge_card))
        orders = [self.order] * 3 + [self.order + "-2"]

        class Model(BaseLlm):
            async def generate_content_async(self, llm_request, stream=False):
                calls = [types.FunctionCall(name="charge_card", args={"order_id": order, "amount_cents": 1999}, id=f"call_{i}")
                         for i, order in enumerate(orders)]
                ended = llm_request.contents[-1].parts[-1].function_response
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="done")] if ended
                                                        else [types.Part(function_call=call) for call in calls]))

        self.runner.agent.model = Model(model="parallel")
        got = [r.response for event in self.send(text="go") for r in event.get_function_responses()]
        self.assertEqual(([g["verified"] for g in got], len({g["id"] for g in got[:3]})), ([True] * 4, 1))
        self.assertEqual((self.effects(), self.effects(self.order + "-2")), (1, 1))

    def test_callbacks(self):
        seen = []

        def after(tool, args, tool_context, tool_response):
            seen.append((tool_context.function_call_id, tool_response["status"]))

        tool = readback.adk.tool(workflow=lambda c: c.state["run"], **CHARGE)(charge_card)
        self.agent(tool, before_tool_callback=lambda tool, args, tool_context: {"error": "not today"})
        self.send(text="go")
        self.assertEqual(self.effects(), 0)
        self.agent(tool, after_tool_callback=after)
        self.send(text="go")
        self.assertEqual(seen, [("call_1", "verified")])
        written, = reviewer().writes(workflow=self.order)
        self.assertEqual(written["step"], f"charge:{self.order}")
        self.assertEqual(self.effects(), 1)


class Modules(Case):
    def test_a_framework_is_imported_when_it_is_used(self):
        modules = ["adk", "crewai", "langgraph", "openai_agents", "pydantic_ai"]
        code = f"import sys\nfor m in {modules}: __import__('readback.' + m)\nprint(*sys.modules)"
        loaded = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True,
                                env={"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests" / "stubs")))}).stdout.split()
        self.assertEqual({"agents", "crewai", "google.adk", "langgraph", "langchain_core", "pydantic_ai"} & set(loaded), set())
        for name in modules:
            self.assertLessEqual(len((ROOT / "src" / "readback" / f"{name}.py").read_text().splitlines()), 60, name)

    def test_a_wrong_declaration_is_refused_before_a_call(self):
        for module in readback.adk, readback.crewai, readback.langgraph, readback.openai_agents, readback.pydantic_ai:
            with self.assertRaises(TypeError):
                module.tool(**ORDER)  # a call that the model repeats would be another write
            for wrong in {"key": ["order"]}, {"key": []}, {"operation": "charge:{order}"}:
                with self.assertRaises(ValueError):
                    module.tool(**{**CHARGE, **wrong})(charge_card)
            with self.assertRaises(TypeError):
                module.tool(kind="order", key=["order_id"], operation="charge:{order_id}")(charge_card)

    def test_a_function_that_makes_the_write_itself(self):
        use("crewai")

        def made(order_id: str, amount_cents: int):
            """Charges for an order."""
            return "ord_1"

        with self.assertRaises(TypeError):
            readback.crewai.tool(**CHARGE)(made).run(order_id=self.order, amount_cents=1999)
        self.assertEqual(self.effects(), 0)


if __name__ == "__main__":
    unittest.main()
