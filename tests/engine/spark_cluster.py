"""A cluster of Spark on this machine: a master and two workers in processes of their own.

Spark never runs a second copy of a slow task at the address of the first; so that it does, each worker has its own.
"""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # tests end before a better compiler would pay
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.executor.memory": "768m",
    "spark.driver.extraJavaOptions": _QUICK,
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.sql.shuffle.partitions": "3",
}
_TWICE = {  # every task that is not done long after others is run a second time
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.minTaskRuntime": "0ms",
}


def has_java():
    return shutil.which("java") is not None


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


@contextmanager
def cluster(folder):
    """A classic session and a Connect session on the same two workers."""
    from countervail.engine.spark.session import quiet

    with quiet():
        import pyspark
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.session import SparkSession as Connected

    home, port, connect = Path(pyspark.__file__).parent, free_port(), free_port()
    java = {"SPARK_DAEMON_JAVA_OPTS": _QUICK, "SPARK_DAEMON_MEMORY": "256m"}
    env = {**os.environ, **java, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    run = [str(home / "bin" / "spark-class")]
    master = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    kept = ["--webui-port", "0", "--cores", "1", "--memory", "1g"]
    commands = [[*run, "org.apache.spark.deploy.master.Master", *master]]
    for host in ("127.0.0.1", "127.0.0.2"):
        where = ["--host", host, "--work-dir", str(folder / host), f"spark://127.0.0.1:{port}"]
        commands.append([*run, "org.apache.spark.deploy.worker.Worker", *kept, *where])
    processes, log = [], (folder / "log").open("w")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        processes += [subprocess.Popen(c, env=env, stdout=log, stderr=log, cwd=folder) for c in commands]
        builder = SparkSession.builder.master(f"spark://127.0.0.1:{port}").appName("tests")
        plugin = {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin"}
        plugin["spark.connect.grpc.binding.port"] = str(connect)
        for name, value in {**SETTINGS, **_TWICE, **plugin}.items():
            builder = builder.config(name, value)
        with quiet():
            classic = builder.getOrCreate()
            connected = Connected.builder.remote(f"sc://127.0.0.1:{connect}").getOrCreate()
        yield classic, connected
        with quiet():
            connected.stop()
            classic.stop()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        log.close()
