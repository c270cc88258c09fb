"""Who may read what is typed."""

import asyncio

from interlock.cli.chat.input_lock import Floor


async def test_a_question_waits_for_the_prompt_and_says_so():
    told, order = [], []
    floor = Floor(lambda: told.append("waits"))
    typed = asyncio.Event()

    async def prompt():
        async with floor.for_prompt():
            order.append("prompt")
            await typed.wait()

    async def question(name):
        async with floor.for_question():
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)

    prompting = asyncio.create_task(prompt())
    await asyncio.sleep(0)
    asking = [asyncio.create_task(question(name)) for name in ("a", "b")]
    await asyncio.sleep(0)
    assert (told, order) == (["waits", "waits"], ["prompt"])
    typed.set()
    await prompting
    await floor.answered()
    assert order == ["prompt", "a", "a", "b", "b"]
    await prompt()
    await asyncio.gather(*asking)
    assert order == ["prompt", "a", "a", "b", "b", "prompt"]  # all questions, one by one, before the next prompt


async def test_who_gives_up_lets_the_others_go_on():
    floor = Floor(lambda: None)
    holding = asyncio.Event()

    async def hold():
        async with floor.for_question():
            holding.set()
            await asyncio.sleep(3600)

    task = asyncio.create_task(hold())
    await holding.wait()
    task.cancel()
    await asyncio.wait([task])
    async with floor.for_prompt():
        pass
