"""Asks a server at a steady rate: `http_load.py HOST:PORT RATE SECONDS SENTENCES CONNECTIONS`; prints one line of JSON.

SENTENCES is a file with one sentence a line. A request's time counts from when it was due, so one that waits because the
server is behind is not forgotten. With RATE 0 the sentences are asked one after the other, once each.
"""

import http.client
import json
import sys
import threading
import time
import urllib.parse


def ask(connection, sentence):
    connection.request("GET", "/api/v1/search?q=" + urllib.parse.quote(sentence))
    response = connection.getresponse()
    response.read()
    return response.status


def steadily(server, rate, seconds, sentences, connections):
    total, times, failed = int(rate * seconds), [], []
    lock, turn = threading.Lock(), iter(range(total))
    begin = time.perf_counter() + 0.5

    def work():
        connection = http.client.HTTPConnection(server, timeout=30)
        while True:
            with lock:
                number = next(turn, None)
            if number is None:
                return
            due = begin + number / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            status = ask(connection, sentences[number % len(sentences)])
            times.append(time.perf_counter() - due)
            if status != 200:
                failed.append(status)

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, failed


def one_by_one(server, sentences):
    connection, times, failed = http.client.HTTPConnection(server, timeout=30), [], []
    for sentence in sentences:
        begin = time.perf_counter()
        status = ask(connection, sentence)
        times.append(time.perf_counter() - begin)
        if status != 200:
            failed.append(status)
    return times, failed


def main():
    server, rate, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    with open(sys.argv[4], encoding="utf-8") as file:
        sentences = [line.strip() for line in file if line.strip()]
    if rate > 0:
        times, failed = steadily(server, rate, seconds, sentences, int(sys.argv[5]))
    else:
        times, failed = one_by_one(server, sentences)
    times.sort()
    at = lambda share: 1e3 * times[min(len(times) - 1, int(share * len(times)))]
    told = {"requests": len(times), "failed": len(failed), "median_ms": at(0.5), "p99_ms": at(0.99), "worst_ms": at(1.0)}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
