"""A chat message as an app assembles it, and the checks that every frame must pass."""

from __future__ import annotations

from expect import ERROR_CODES, brief


class Message:
    """One message of the agent: chunks appended, edits applied, deltas added."""

    def __init__(self, ident: str):
        self.id = ident
        self.text = ""
        self.frames: list[dict] = []

    @property
    def last(self) -> dict:
        return self.frames[-1]

    @property
    def finals(self) -> int:
        return sum(bool(f.get("final")) for f in self.frames)

    @property
    def final(self) -> bool:
        return self.finals > 0

    def apply(self, frame: dict) -> None:
        self.frames.append(frame)
        if "append" in frame:
            # `at` counts UTF-16 code units. A delta that does not fit is ignored.
            if frame["at"] == utf16_length(self.text):
                self.text += frame["append"]
            return
        continues = frame.get("chunk", {}).get("index", 0) > 0 and not frame.get("edit")
        self.text = self.text + frame["text"] if continues else frame["text"]


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


# Fields that clients read without asking whether they are there.
REQUIRED: dict[str, dict[str, type]] = {
    "ready": {"session": str, "capabilities": dict},
    "capabilities": {"capabilities": dict, "agent": str},
    "message": {"id": str, "text": str, "final": bool},
    "media": {"id": str, "kind": str, "final": bool},
    "prompt": {"id": str, "kind": str, "text": str, "options": list},
    "prompt_done": {"prompt_id": str, "expired": bool},
    "accepted": {"duplicate": bool},
    "avatar": {"state": str},
    "tool": {"id": str, "name": str, "state": str},
    "error": {"code": str, "message": str},
}
DELTA = {"id": str, "append": str, "at": int, "final": bool}
AVATAR_STATES = ("idle", "thinking", "speaking")


def malformed(frame: dict, accept: tuple[str, ...]) -> str | None:
    """What is wrong with a frame from the server, or None."""
    kind = frame["t"]
    delta = kind == "message" and "append" in frame
    if delta and "delta" not in accept:
        return "a delta for a device that did not accept delta"
    if kind == "tool" and "tool" not in accept:
        return "a tool frame for a device that did not accept tool"
    for field, wanted in (DELTA if delta else REQUIRED.get(kind, {})).items():
        if not isinstance(frame.get(field), wanted):
            return f"{kind} without a {wanted.__name__} `{field}`: {brief(frame)}"
    if kind == "accepted" and not isinstance(frame.get("id", ""), str):
        return f"accepted with an id that is no string: {brief(frame)}"
    if kind in ("message", "prompt") and not frame["id"]:
        return f"{kind} with an empty id"
    if kind == "error" and frame["code"] not in ERROR_CODES:
        return f"an unknown error code {frame['code']!r}"
    if kind == "avatar" and frame["state"] not in AVATAR_STATES:
        return f"an unknown avatar state {frame['state']!r}"
    if kind == "media" and "url" not in frame and not isinstance(frame.get("data"), str):
        return "media without data and without url"
    return None


class SequenceCheck:
    """Watches one connection: `seq` of messages and files never goes back.

    Two frames may share a seq only if they are parts of one message or file.
    """

    def __init__(self):
        self.seq, self.id = 0, None

    def problem(self, frame: dict) -> str | None:
        if frame["t"] not in ("message", "media") or "seq" not in frame:
            return None
        before, owner = self.seq, self.id
        self.seq, self.id = frame["seq"], frame["id"]
        if self.seq < before or self.seq == before and self.id != owner:
            return f"seq {self.seq} after {before}"
        return None
