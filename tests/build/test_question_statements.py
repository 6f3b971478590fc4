"""Sentences out of questions and their answers."""

from __future__ import annotations

import pytest

from saywhere.build.question_statements import statement


@pytest.mark.parametrize(
    ("question", "answer", "said"),
    [
        ("what is there eating food in a field", "cow", "a cow is there eating food in a field"),
        ("What are flying on the beach?", "kites", "kites are flying on the beach"),
        ("what is the color of the plate", "white", "a white plate"),
        ("how many giraffes stand by a tree", "two", "two giraffes stand by a tree"),
        ("where is the dog sitting", "car", "the dog sitting in a car"),
        (
            "there are doors separating what from the bath",
            "bedroom",
            "there are doors separating a bedroom from the bath",
        ),
        ("the man holds", "bat", "the man holds a bat"),
    ],
)
def test_an_answer_stands_where_the_question_asks(question: str, answer: str, said: str) -> None:
    assert statement(question, answer) == said
