"""Jobs: progress events, cancellation, limits, and no processes or files left behind."""

import contextlib
import json
import tempfile
import time
from pathlib import Path

import httpx
import psutil
import pytest

from qkv.web import limits

STUDY = {"kind": "noise-study", "n": 4, "scales": [1, 2, 3], "n_draws": 200}
LONG = {"kind": "train", "people": 50, "steps": 5000, "d_model": 128, "n_layer": 4}


def events(client, id, after=None):
    """The events of a job until it ends, as (id, name, data)."""
    headers = {} if after is None else {"last-event-id": str(after)}
    with client.stream("GET", f"/api/jobs/{id}/events", headers=headers, timeout=120) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        found = []
        for block in "".join(stream.iter_text()).split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if fields:
                found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
        return found


def workers():
    """Live processes of jobs, which are those with a lower priority than this one."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.status() != psutil.STATUS_ZOMBIE and child.nice() > psutil.Process().nice():
                found.append(child)
    return found


def until(client, id, *statuses, seconds=90):
    end = time.monotonic() + seconds
    while (job := client.get(f"/api/jobs/{id}").json())["status"] not in statuses:
        assert time.monotonic() < end, job
        time.sleep(0.05)
    return job


def test_events_can_be_read_again_and_from_any_number_on(client, post):
    id = post("/api/jobs", STUDY)["id"]
    seen = events(client, id)
    names = [name for _, name, _ in seen]
    assert names[-1] == "done" and set(names[:-1]) <= {"progress"}
    assert [n for n, _, _ in seen] == list(range(1, len(seen) + 1))
    assert [c["name"] for c in seen[-1][2]["curves"]] == ["one head", "two heads", "min variance"]
    assert events(client, id) == seen
    assert events(client, id, after=seen[0][0]) == seen[1:]
    assert events(client, id, after=seen[-1][0]) == []
    job = client.get(f"/api/jobs/{id}").json()
    assert job["status"] == "done" and job["result"] == seen[-1][2]
    assert client.get("/api/jobs").json()["jobs"][0]["id"] == id
    assert client.delete(f"/api/jobs/{id}").json()["status"] == "done"


@pytest.mark.slow
def test_a_study_has_the_figures_of_the_noise_page(client, post):
    id = post("/api/jobs", {**STUDY, "isotropic": 0.0, "scales": [4.0]})["id"]
    rows = {curve["name"]: curve["points"][0] for curve in events(client, id)[-1][2]["curves"]}
    for layout in post("/api/noise", {"n": 4, "isotropic": 0.0, "scale": 4.0})["layouts"]:
        assert rows[layout["name"]]["variance"] == layout["variance"]
        assert rows[layout["name"]]["probability"] == layout["probability"]


def test_a_running_job_can_be_cancelled_and_too_many_are_refused(client, post):
    ids = [post("/api/jobs", LONG)["id"] for _ in range(limits.MAX_RUNNING_JOBS)]
    refused = client.post("/api/jobs", json=STUDY)
    assert refused.status_code == 429 and "running" in refused.json()["error"]["problem"]
    for id in ids:
        assert client.delete(f"/api/jobs/{id}").json()["status"] == "cancelled"
        assert events(client, id)[-1][1] == "cancelled"
    end = time.monotonic() + 15
    while workers():
        assert time.monotonic() < end, "the process of a cancelled job is alive"
        time.sleep(0.1)
    assert client.get("/api/health").status_code == 200


@pytest.mark.slow
def test_a_trained_model_appears_and_answers(client, post):
    id = post("/api/jobs", {"kind": "train", "people": 8, "steps": 400, "d_model": 32, "n_layer": 1})["id"]
    seen = events(client, id)
    assert seen[-1][1] == "done", seen[-1]
    assert seen[0][2]["total"] == 400 and "loss" in seen[0][2]
    name = seen[-1][2]["model"]
    assert name in [m["name"] for m in client.get("/api/models").json()["models"]]
    question = seen[-1][2]["questions"][0]["question"]
    answer = post("/api/ask", {"model": name, "question": question})
    assert answer["badge"] in ("remembered", "made up", "unsure") and answer["heads"]
    names = {}
    exec(answer["python"], names)
    assert names["answer"].answer == answer["answer"]


def test_a_server_that_stops_ends_its_jobs_and_removes_their_files(serve):
    before = set(Path(tempfile.gettempdir()).glob("qkv-server-*"))
    with serve() as address:
        id = httpx.post(f"{address}/api/jobs", json=LONG, timeout=30).json()["id"]
        (folder,) = set(Path(tempfile.gettempdir()).glob("qkv-server-*")) - before
        assert (folder / id).is_dir()
        children = psutil.Process().children(recursive=True)
    assert not folder.exists()
    _, alive = psutil.wait_procs([c for c in children if c.is_running() and "spawn_main" in " ".join(c.cmdline())], 10)
    assert not [p for p in alive if str(folder) in " ".join(p.cmdline())]


@pytest.mark.slow
def test_a_job_beyond_its_time_limit_has_failed(serve, monkeypatch):
    import qkv.web.app as app
    from qkv.web.job_manager import JobManager

    monkeypatch.setattr(app, "JobManager", lambda on_trained: JobManager(on_trained, seconds=3.0))
    with serve() as address, httpx.Client(base_url=address, timeout=60) as client:
        id = client.post("/api/jobs", json=LONG).json()["id"]
        job = until(client, id, "failed", seconds=30)
        assert "3 s" in job["error"]["problem"]
        assert events(client, id)[-1][1] == "failed"


def test_a_job_whose_process_is_killed_has_failed(client, post):
    id = post("/api/jobs", LONG)["id"]
    end = time.monotonic() + 60
    while not (found := workers()):
        assert time.monotonic() < end
        time.sleep(0.05)
    for process in found:
        process.kill()
    assert "ended early" in until(client, id, "failed")["error"]["problem"]


@pytest.mark.slow
def test_only_the_latest_jobs_are_listed(client, post, monkeypatch):
    monkeypatch.setattr(limits, "MAX_LISTED_JOBS", 1)
    ids = []
    for _ in range(2):
        ids.append(post("/api/jobs", {**STUDY, "scales": [1]})["id"])
        until(client, ids[-1], "done")
    listed = [job["id"] for job in client.get("/api/jobs").json()["jobs"]]
    assert listed == ids[:0:-1]


@pytest.mark.slow
def test_streams_beyond_the_limit_are_refused(client, post, monkeypatch):
    id = post("/api/jobs", {**STUDY, "scales": [1]})["id"]
    until(client, id, "done")
    monkeypatch.setattr(limits, "MAX_EVENT_STREAMS", 0)
    assert client.get(f"/api/jobs/{id}/events").status_code == 503
