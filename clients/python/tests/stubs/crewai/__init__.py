"""Stub of crewai 1.15.17: an agent's text names a tool; a tool that raises is run again; a guardrail runs the task again."""

import json
import re

from crewai.llms.base_llm import BaseLLM


class Agent:
    def __init__(self, *, role, goal, backstory, llm, tools=(), max_retry_limit=2, verbose=False):
        self.role, self.llm, self.tools, self.max_retry_limit = role, llm, list(tools), max_retry_limit

    def execute_task(self, task, context=None, times=0):
        try:
            return self.run(task, context)
        except Exception:
            if times >= self.max_retry_limit:
                raise
            return self.execute_task(task, context, times + 1)

    def run(self, task, context):
        messages = [{"role": "user", "content": task.description + (context or "")}]
        while True:
            text = self.llm.call(messages)
            messages.append({"role": "assistant", "content": text})
            if "Final Answer:" in text:
                return text.split("Final Answer:")[-1].strip()
            name, given = re.search(r"Action: *(.*)\nAction Input: *(.*)", text).groups()
            tool = next(t for t in self.tools if t.name == name.strip())
            messages.append({"role": "user", "content": "Observation: " + self.use(tool, json.loads(given))})

    def use(self, tool, arguments):
        """Two calls for each of up to three attempts, as long as the tool raises."""
        for last in (False, False, True):
            try:
                return str(tool.run(**arguments))
            except Exception:
                try:
                    return str(tool.run(**arguments))
                except Exception as e:
                    if last:
                        return f"I encountered an error while trying to use the tool. This was the error: {e}."


class TaskOutput:
    def __init__(self, raw):
        self.raw = raw


class Task:
    def __init__(self, *, description, expected_output, agent, guardrail=None, guardrail_max_retries=3):
        self.description, self.agent, self.guardrail, self.guardrail_max_retries = description, agent, guardrail, guardrail_max_retries

    def execute_sync(self):
        output = TaskOutput(self.agent.execute_task(self))
        for attempt in range(self.guardrail_max_retries + 1):
            good, result = self.guardrail(output) if self.guardrail else (True, output.raw)
            if good:
                return TaskOutput(result)
            output = TaskOutput(self.agent.execute_task(self, context=f"\n{result}"))
        raise Exception(f"Task failed guardrail validation after {self.guardrail_max_retries} retries.")


class Crew:
    def __init__(self, *, agents, tasks, verbose=False):
        self.tasks = tasks

    def kickoff(self):
        for task in self.tasks:
            output = task.execute_sync()
        return output
