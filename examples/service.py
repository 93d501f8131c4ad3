"""A classifier that learns and answers over HTTP.

    pip install 'bcl[service]'
    FEATURES=2 CLASSES=4 uvicorn --app-dir examples service:app

What it has learnt is saved every minute, and when it stops: to a temporary name, flushed, renamed. A server that is
killed goes on from the last whole file. One process serves one learner; its threads take turns (docs/service.md).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from torch import Tensor

import bcl
from bcl.errors import InputError, StorageError, UserError


def number(name: str, default: int, kind: type = int) -> Any:
    text = os.environ.get(name, str(default))
    try:
        if 0 < (value := kind(text)) < float("inf"):
            return value
    except ValueError:
        pass
    raise SystemExit(f"{name} is a {'whole ' if kind is int else ''}number above 0, not {text!r}")


FILE = Path(os.environ.get("LEARNER", "learner.safetensors"))
SAVE_EVERY = number("SAVE_EVERY", 60, float)  # seconds
FEATURES, CLASSES = number("FEATURES", 64), number("CLASSES", 10)


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: list[list[float]]


class Lesson(Question):
    y: list[int]


class Service:
    """A learner, how many samples it has seen, and the file that both are kept in."""

    def __init__(self) -> None:
        setting = bcl.Setting.domain(tasks=1, classes=CLASSES, shape=(FEATURES,), memory=1000)
        self.learner = bcl.ER(bcl.build("mlp", setting), setting, lr=0.05, memory="reservoir", replay_current=True)
        self.samples = self.saved = 0
        self.stopped = threading.Event()
        if FILE.exists():
            self.samples = self.saved = int(bcl.load(self.learner, FILE)["samples"])

    def learn(self, x: list[list[float]], y: list[int]) -> int:
        with self.learner.lock:  # the count belongs to what was learnt: no save comes between the two
            before = {name: tensor.clone() for name, tensor in self.learner.state_dict().items()}
            try:
                self.learner.observe(x, y, 0)
                self.answer(x)
            except InputError:
                self.learner.load_state_dict(before)
                raise
            self.samples += len(y)
            return self.samples

    def answer(self, x: list[list[float]]) -> Tensor:
        p = self.learner.predict(x).softmax(1)
        if not p.isfinite().all():
            raise InputError("these samples are too large: what the network answers to them is not finite")
        return p

    def save(self) -> None:
        with self.learner.lock:
            if self.samples > self.saved:
                bcl.save(self.learner, FILE, {"samples": self.samples})
                self.saved = self.samples

    def keep_saving(self) -> None:
        while not self.stopped.wait(SAVE_EVERY):
            try:
                self.save()
            except StorageError as error:  # a full disk may have room again in a minute
                logging.getLogger("uvicorn.error").error(error)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    saver = threading.Thread(target=service.keep_saving, daemon=True)
    saver.start()
    yield
    service.stopped.set()
    saver.join()
    service.save()


app = FastAPI(lifespan=lifespan)
try:
    app.state.service = Service()
except UserError as error:  # a file of another learner, or a damaged one
    raise SystemExit(str(error)) from None


@app.exception_handler(InputError)
def refuse(_: Request, error: InputError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 422)


@app.exception_handler(RequestValidationError)
def misread(request: Request, error: RequestValidationError) -> JSONResponse:
    first = error.errors()[0]
    return refuse(request, InputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}"))


@app.post("/learn")
def learn(lesson: Lesson) -> dict[str, int]:
    return {"samples": app.state.service.learn(lesson.x, lesson.y)}


@app.post("/predict")
def predict(question: Question) -> dict[str, Any]:
    if not app.state.service.samples:
        raise HTTPException(409, "nothing has been learnt yet")
    p = app.state.service.answer(question.x)
    return {"y": p.argmax(1).tolist(), "p": p.tolist()}


@app.get("/")
def state() -> dict[str, int]:
    return {"samples": app.state.service.samples, "saved": app.state.service.saved}
