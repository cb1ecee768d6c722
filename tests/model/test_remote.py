"""A model behind HTTP, against a real server: what is sent, what is understood, and everything that can go wrong."""

import json
import pickle
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import ParameterError, PrivacyWarning, RemoteModelError, SchemaError
from countervail.model import Remote
from countervail.model.decision import Decision
from countervail.testing import small_model, small_table

TABLE, ASKED = small_table(), small_table(12, seed=1)
SECRET = "Xanthippe"


class Server:
    """Answers each request by a function of the rows; remembers what it was asked."""

    def __init__(self):
        self.requests, self.headers, self.answer, self.released = [], [], scored, threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                outer.headers.append(dict(self.headers))
                outer.answer(self, body)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/invocations"

    def rows(self):
        """All rows that were asked about, request by request."""
        return [r["dataframe_split"]["data"] for r in self.requests]


@pytest.fixture
def server():
    made = Server()
    yield made
    made.released.set()
    made.http.shutdown()
    made.http.server_close()


def send(handler, content, status=200, **headers):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def asked_of(body):
    given = body["dataframe_split"]
    return pd.DataFrame(given["data"], columns=given["columns"])


def scored(handler, body):
    send(handler, {"predictions": small_model(asked_of(body)).tolist()})


def labelled(handler, body):
    send(handler, np.where(small_model(asked_of(body))[:, 1] > 0.5, "yes", "no").tolist())


def named(handler, body):
    send(handler, {"predictions": [{"yes": b, "no": a} for a, b in small_model(asked_of(body)).tolist()]})


def always(content, status=200, **headers):
    return lambda handler, body: send(handler, content, status, **headers)


def remote(server, **settings):
    return Remote(server.url, **{"retries": 0, "wait": 0, "timeout": 20, **settings})


@pytest.mark.parametrize("answer", [scored, named])
@pytest.mark.parametrize("explainer", [cv.NICE("sparsity"), cv.CFK(k=4), cv.CFK(k=4, search="exact")], ids=str)
def test_a_remote_model_is_explained_as_the_local_one(server, answer, explainer):
    server.answer = answer
    here = explainer.fit(TABLE, small_model).explain(ASKED)
    there = explainer.fit(TABLE, remote(server)).explain(ASKED)
    assert there.counterfactuals.equals(here.counterfactuals) and there.status.equals(here.status)


def test_labels_alone_will_do(server):
    server.answer = labelled
    decision = Decision(remote(server), TABLE, "Test")
    assert not decision.has_scores
    assert decision.train.tolist() == small_model(TABLE.features).argmax(axis=1).tolist()


def test_the_order_of_scores_can_be_told(server):
    server.answer = lambda h, b: send(h, small_model(asked_of(b))[:, ::-1].tolist())
    decision = Decision(remote(server, labels=["yes", "no"]), TABLE, "Test")
    np.testing.assert_allclose(decision.train_scores, small_model(TABLE.features))


def test_rows_go_out_in_batches_and_each_only_once(server):
    model = remote(server, batch=25)
    twice = pd.concat([TABLE.features, TABLE.features], ignore_index=True)
    found = model(twice)
    assert [len(rows) for rows in server.rows()] == [26, 26, 11]
    np.testing.assert_allclose(found.iloc[:60], small_model(TABLE.features))
    assert found.iloc[:60].equals(found.iloc[60:].reset_index(drop=True))
    model(TABLE.features)
    assert len(server.requests) == 3
    # One row more in each request: the first one of all.
    times = Counter(json.dumps(row) for rows in server.rows() for row in rows)
    first = json.dumps(server.rows()[0][0])
    assert times.pop(first) == 4 and set(times.values()) == {1}


def test_a_small_cache_forgets_and_none_keeps_nothing(server):
    small, none = remote(server, cache=10), remote(server, cache=0)
    for model, more in ((small, 50), (none, 60)):
        server.requests.clear()
        model(TABLE.features)
        model(TABLE.features)
        assert sum(len(rows) - 1 for rows in server.rows()) == 60 + more


def test_values_are_sent_as_json_has_them(server):
    frame = pd.DataFrame(
        {
            "n": np.array([1, 2], np.int8),
            "x": [0.5, np.nan],
            "t": pd.Categorical(["a", None]),
            "b": [True, False],
            "m": pd.array([1, None], dtype="Int64"),
            "d": pd.to_datetime(["2020-01-02", None]),
        }
    )
    server.answer = always([1, 2, 1])
    remote(server)(frame)
    sent = server.requests[0]["dataframe_split"]
    assert sent["columns"] == list(frame.columns)
    assert sent["data"][:2] == [[1, 0.5, "a", True, 1, "2020-01-02T00:00:00"], [2, None, None, False, None, None]]


def test_another_form_of_request_and_headers(server):
    server.answer = always(["a", "b", "a"])
    model = remote(server, headers={"Authorization": SECRET}, request=lambda columns, rows: {"instances": rows})
    assert model(pd.DataFrame({"x": [1, 2]})).tolist() == ["a", "b"]
    assert server.requests == [{"instances": [[1], [2], [1]]}]
    assert server.headers[0]["Authorization"] == SECRET and SECRET not in repr(model)


WRONG = {
    "a time-out": (lambda s: lambda h, b: s.released.wait(60), "did not answer within 0.2 seconds"),
    "a drip": (lambda s: lambda h, b: drip(h, s), "did not answer within 0.2 seconds"),
    "no JSON": (lambda s: always(b"<html>Xanthippe</html>"), "is no JSON"),
    "not even text": (lambda s: always(b"\xff\xfe\x00"), "is no JSON"),
    "JSON without end": (lambda s: always(b"[" * 100_000), "is no JSON"),
    "an error": (lambda s: always(SECRET, 500), "answered with the HTTP status 500"),
    "nothing there": (lambda s: always(SECRET, 404), "answered with the HTTP status 404"),
    "a redirect": (lambda s: always("", 302, Location=s.url), "answered with the HTTP status 302"),
    "no list": (lambda s: always({"predictions": SECRET}), "must be a list"),
    "another object": (lambda s: always({"error": SECRET}), "must be a list"),
    "too few": (lambda s: always([SECRET] * 3), "must have one entry per row. It has 3 for 61 rows"),
    "too many": (lambda s: always([0] * 62), "must have one entry per row. It has 62 for 61 rows"),
    "one score": (lambda s: always([[0.5]] * 61), "must have a score for each label"),
    "uneven scores": (lambda s: always([[0.5, 0.5]] * 60 + [[0.5]]), "must have a score for each label"),
    "texts for scores": (lambda s: always([[SECRET, 0.5]] * 61), "must hold numbers for scores"),
    "NaN for scores": (lambda s: always(b"[" + b"[NaN, 0.5]," * 60 + b"[0.5, 0.5]]"), "must hold numbers for scores"),
    "huge scores": (lambda s: always([[10**400, 0.5]] * 61), "must hold numbers for scores"),
    "nothing for labels": (lambda s: always([None] * 61), "must hold labels"),
    "a mixture": (lambda s: always([SECRET] * 60 + [[0.5, 0.5]]), "must hold labels"),
    "other names": (lambda s: always([{"no": 0.5, "yes": 0.5}] * 60 + [{SECRET: 1}]), "a score for each label, and"),
    "a cut connection": (lambda s: lambda h, b: h.connection.close(), "broke the connection off"),
    "a cut answer": (lambda s: always(b"[1, 2", 200, Content_Length="900"), "is no JSON"),
}


def drip(handler, server):
    """A byte whenever the client would give up, and no end."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while not server.released.wait(0.05):
            handler.wfile.write(b" ")
    except OSError:
        pass


@pytest.mark.parametrize("wrong", WRONG)
def test_whatever_goes_wrong_is_said_in_one_line_without_values(server, wrong):
    make, words = WRONG[wrong]
    server.answer = make(server)
    frame = TABLE.features.assign(city=SECRET)
    with pytest.raises(RemoteModelError) as caught:
        remote(server, timeout=0.2)(frame)
    text = str(caught.value)
    assert words in text and "\n" not in text and server.url in text
    assert SECRET not in text and not any(f"{v}" in text for v in frame["income"])
    assert caught.value.__context__ is None and caught.value.__cause__ is None


def test_explainers_pass_the_clear_words_on(server):
    server.answer = always(SECRET, 503)
    with pytest.raises(RemoteModelError, match="HTTP status 503"):
        cv.NICE().fit(TABLE, remote(server))
    server.answer = lambda h, b: send(h, [SECRET] * len(b["dataframe_split"]["data"]))
    with pytest.raises(SchemaError, match="labels that are not in the table's target"):
        cv.NICE().fit(TABLE, remote(server))


def test_a_model_that_disagrees_with_itself_is_refused(server):
    count = iter(range(10_000))
    server.answer = lambda h, b: send(h, [f"label {next(count)}" for _ in b["dataframe_split"]["data"]])
    with pytest.raises(RemoteModelError, match="disagrees with itself"):
        remote(server)(TABLE.features)


def test_a_model_that_changes_between_requests_is_refused(server):
    model = remote(server)
    model(TABLE.features)
    server.answer = lambda h, b: send(h, (0.9 * small_model(asked_of(b))).tolist())
    with pytest.raises(RemoteModelError, match="disagrees with itself"):
        model(ASKED.features)


def test_scores_may_tremble_in_their_last_digits(server):
    model = remote(server)
    model(TABLE.features)
    server.answer = lambda h, b: send(h, (small_model(asked_of(b)) + 1e-9).tolist())
    assert len(model(ASKED.features)) == 12


def test_a_server_that_is_busy_is_asked_again(server):
    seen = []

    def busy(handler, body):
        seen.append(body)
        send(handler, SECRET, 503) if len(seen) < 3 else scored(handler, body)

    server.answer = busy
    assert len(remote(server, retries=2)(TABLE.features)) == 60 and len(seen) == 3


def test_retries_end_and_are_counted(server):
    server.answer = always(SECRET, 503)
    with pytest.raises(RemoteModelError, match=r"HTTP status 503 \(3 attempts\)"):
        remote(server, retries=2)(TABLE.features)
    assert len(server.requests) == 3


def test_what_will_not_change_is_asked_once(server):
    server.answer = always(SECRET, 400)
    with pytest.raises(RemoteModelError, match=r"HTTP status 400\."):
        remote(server, retries=5)(TABLE.features)
    assert len(server.requests) == 1


def test_nobody_there_is_said(server):
    url = server.url
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(RemoteModelError, match="cannot be reached"):
        Remote(url, retries=0)(TABLE.features)


def test_scores_in_one_batch_and_labels_in_another_are_refused(server):
    model = remote(server, batch=30)
    server.answer = lambda h, b: (scored if len(server.requests) == 1 else labelled)(h, b)
    with pytest.raises(RemoteModelError, match="disagrees with itself"):
        model(TABLE.features)


def test_no_rows_need_no_request(server):
    assert len(remote(server)(TABLE.features.iloc[:0])) == 0 and server.requests == []


def test_a_pickle_carries_neither_answers_nor_rows(server):
    model = remote(server)
    model(TABLE.features.assign(city=SECRET))
    stored = pickle.dumps(model)
    assert SECRET.encode() not in stored
    again = pickle.loads(stored)
    server.requests.clear()
    assert len(again(TABLE.features)) == 60 and len(server.requests) == 1


def test_infinite_numbers_are_refused():
    with pytest.raises(RemoteModelError, match="no infinite numbers"):
        Remote("https://models.example.org")(pd.DataFrame({"x": [np.inf]}))


@pytest.mark.parametrize(
    ("url", "settings", "words"),
    [
        ("file:///etc/passwd", {}, "'url' parameter of Remote"),
        ("models.example.org", {}, "'url' parameter of Remote"),
        ("http://[broken", {}, "'url' parameter of Remote"),
        ("https://h:99999/", {}, "'url' parameter of Remote"),
        (7, {}, "'url' parameter of Remote"),
        ("https://h", {"batch": 0}, "'batch' parameter of Remote"),
        ("https://h", {"batch": 2.5}, "'batch' parameter of Remote"),
        ("https://h", {"retries": -1}, "'retries' parameter of Remote"),
        ("https://h", {"cache": True}, "'cache' parameter of Remote"),
        ("https://h", {"timeout": 0}, "'timeout' parameter of Remote"),
        ("https://h", {"timeout": float("nan")}, "'timeout' parameter of Remote"),
        ("https://h", {"wait": -1}, "'wait' parameter of Remote"),
        ("https://h", {"labels": ["a"]}, "'labels' parameter of Remote"),
        ("https://h", {"labels": ["a", "a"]}, "'labels' parameter of Remote"),
    ],
)
def test_bad_parameters_are_named(url, settings, words):
    with pytest.raises(ParameterError, match=words):
        Remote(url, **settings)


def test_secrets_of_the_address_are_not_shown():
    model = Remote(f"https://user:{SECRET}@models.example.org:8443/credit?token={SECRET}")
    assert repr(model) == "Remote('https://models.example.org:8443/credit')"


def test_rows_without_encryption_are_warned_of():
    with pytest.warns(PrivacyWarning, match="without encryption"):
        Remote("http://models.example.org/credit")
