"""A language model as a judge, over HTTP, at any endpoint that speaks OpenAI's protocol.

    python examples/llm_judge.py http://localhost:8000/v1 MODEL

asks about two small pairs of answers, each in both orders, and prints the votes.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request

from duelist.datasets import AnswerPair, Judge, ask_judge

_QUESTION = """Two answers to the same question. Which one is better? Reply with A, B or TIE, and nothing else.
<question>{prompt}</question>
<first>{first}</first>
<second>{second}</second>"""
_VERDICTS = {"A": 1, "B": -1}


def http_judge(url: str, model: str, timeout_seconds: float = 60.0) -> Judge:
    """A judge behind `url`/chat/completions. The environment variable JUDGE_API_KEY is sent if it is set."""

    def judge(prompt: str, first: str, second: str) -> int:
        content = _QUESTION.format(prompt=prompt, first=first, second=second)
        body = {"model": model, "temperature": 0.0, "messages": [{"role": "user", "content": content}]}
        headers = {"Content-Type": "application/json"}
        if "JUDGE_API_KEY" in os.environ:
            headers["Authorization"] = f"Bearer {os.environ['JUDGE_API_KEY']}"
        request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=timeout_seconds) as reply:
            text = json.load(reply)["choices"][0]["message"]["content"]
        return _VERDICTS.get(text.strip().upper().rstrip("."), 0)

    return judge


if __name__ == "__main__":
    asked = [
        AnswerPair("What is 2 + 2?", "4", "It is 5.", "ada", "bob"),
        AnswerPair("Name a prime above 10.", "12", "11", "ada", "bob"),
    ]
    print(ask_judge(http_judge(sys.argv[1], sys.argv[2]), asked).to_frame())
