"""cli/terminal/command_questions.py: when a server may ask, and what becomes of a question that comes at another
time."""

import asyncio

from interlock.cli.terminal.command_questions import CommandQuestions

CANCEL = {"action": "cancel"}


class User:
    """Answers when told to, and knows whether its question was withdrawn."""

    def __init__(self):
        self.asked, self.answers, self.withdrawn = (asyncio.Event() for _ in range(3))

    async def answer(self, params):
        self.asked.set()
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise
        return {"action": "accept", "content": params}


async def test_a_question_during_a_command_is_answered():
    questions, user = CommandQuestions(), User()
    user.answers.set()
    async with questions.command():
        assert await questions.wrap(user.answer)({"a": 1}) == {"action": "accept", "content": {"a": 1}}


async def test_a_question_between_commands_is_cancelled_and_told_once_per_prompt(capsys):
    questions, user = CommandQuestions(), User()
    ask = questions.wrap(user.answer)
    assert [await ask({}), await ask({})] == [CANCEL, CANCEL] and not user.asked.is_set()
    assert capsys.readouterr().err.count("cancelled") == 1
    async with questions.command():
        pass
    assert await ask({}) == CANCEL
    assert capsys.readouterr().err.count("cancelled") == 1


async def test_a_question_does_not_outlive_its_command():
    questions, user = CommandQuestions(), User()
    async with questions.command():
        asked = asyncio.create_task(questions.wrap(user.answer)({}))
        await user.asked.wait()
    assert user.withdrawn.is_set(), "before the prompt is there again"
    assert await asked == CANCEL


async def test_a_question_that_the_server_takes_back_is_withdrawn():
    questions, user = CommandQuestions(), User()
    async with questions.command():
        asked = asyncio.create_task(questions.wrap(user.answer)({}))
        await user.asked.wait()
        asked.cancel()
        await asyncio.wait([asked])
        assert asked.cancelled()
        await user.withdrawn.wait()
