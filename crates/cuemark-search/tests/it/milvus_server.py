"""Starts a Milvus server for tests: `milvus_server.py FOLDER PORT PROGRAMS`.

Keeps its data in FOLDER and its unpacked program in PROGRAMS. Says `READY PROCESS` on standard output once it answers, and
stops the server when standard input ends, so that no server outlives a test that died.

The server listens on every interface of the machine while a test runs, and no setting keeps it from that: `ip` of its parts
(`proxy.ip`, `queryNode.ip` and so on) names what they tell each other, and with all of them at 127.0.0.1 version 2.3.5 still
opens its ports on `*`. Only its etcd keeps to loopback. Nothing but random numbers is put into it.
"""

import os
import socket
import sys
import time

from milvus import MilvusServer


def bind(port):
    """Whether a port is free, as the server itself sees it: connections that are fading away do no harm.

    Without this a server that takes the place of one that was killed would quietly get another port.
    """
    free = socket.socket()
    free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        free.bind(("127.0.0.1", port))
        free.listen()
        return free
    except OSError:
        free.close()
        return None


def wait_until_open(server, port):
    """Waits for the port rather than for the package's check of health, which comes too soon over old data."""
    while True:
        if server.server_proc.poll() is not None:
            sys.exit("the Milvus server ended at once: is another one running on this machine? They share port 2380")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)


def main():
    folder, port, programs = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    os.makedirs(folder, exist_ok=True)
    os.makedirs(programs, exist_ok=True)
    # Unpacking takes longer than starting; once is enough.
    unpacked = os.path.join(folder, "bin")
    if not os.path.lexists(unpacked):
        os.symlink(os.path.abspath(programs), unpacked)
    server = MilvusServer(wait_for_started=False)
    server.set_base_dir(folder)
    server.config.try_bind_port = bind
    server.config.update(proxy_port=port)
    # It comes back as it was after being killed, sooner than the usual half minute for which the dead one keeps its lease.
    server.config.set("common.session.ttl", 10)
    server.start()
    wait_until_open(server, port)
    print(f"READY {server.server_proc.pid}", flush=True)
    sys.stdin.read()
    # Whoever kills a server wants it dead at once; `stop` waits politely, and not for long enough.
    server.server_proc.kill()
    server.server_proc.wait()


if __name__ == "__main__":
    main()
