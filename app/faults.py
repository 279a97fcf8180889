"""What a visitor is told when something goes wrong: one sentence, in the place where the fault is."""


def sentence(fault: Exception | str) -> str:
    """An error's message as a sentence; blank stays blank."""
    text = str(fault).strip() or (type(fault).__name__ if isinstance(fault, Exception) else "")
    return text[:1].upper() + text[1:] + ("." if text and not text.endswith((".", "!", "?")) else "")


def failure(fault: Exception, things: str = "pictures") -> str:
    """What to tell a visitor when it was not the form's fault; `things` is what to ask fewer of if memory ran out."""
    if isinstance(fault, MemoryError) or "out of memory" in str(fault).lower():
        return f"The machine ran out of memory; try fewer {things}."
    if isinstance(fault, OSError):
        return sentence(fault)
    return f"Generation failed ({type(fault).__name__}); the details are in the server's log."
