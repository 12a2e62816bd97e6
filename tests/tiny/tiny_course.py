"""What holds for the exercises of every lesson."""

from cnslib.tools.course.exercises import Sheet


def told_mistakes(sheet: Sheet) -> dict[str, int]:
    """How many known mistakes each exercise has, after each of them was given as an answer and told so."""
    for exercise in sheet.exercises.values():
        assert exercise.check(exercise.right if not isinstance(exercise.right, tuple) else exercise.right[0]).right is True
        assert exercise.check(...).right is None
        for said, wrong in exercise.mistakes.items():
            reply = exercise.check(wrong if not isinstance(wrong, tuple) else wrong[0])
            assert (reply.right, reply.text) == (False, said)
    return {name: len(exercise.mistakes) for name, exercise in sheet.exercises.items()}
