"""A Slurm of one machine for a test: its own munged, slurmctld and slurmd with files and ports of their own, ended
with it. Nothing of a Slurm that the machine may have is touched."""

import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import time

CONF = """ClusterName=moegauge
SlurmctldHost={host}
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={control}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
MinJobAge=300
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


class CannotStart(Exception):
    """Why there is no Slurm here; a test is then skipped."""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def program(name):
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise CannotStart(f"{name} is not installed (Debian: slurm-wlm, munge)")
    return found


class Cluster:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self):
        munged, control, node = program("munged"), program("slurmctld"), program("slurmd")
        for name in ("munge", "state", "spool"):
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        host = socket.gethostname().split(".")[0]
        (self.folder / "slurm.conf").write_text(CONF.format(
            folder=self.folder, host=host, user=getpass.getuser(), control=free_port(), node=free_port(),
            cpus=os.cpu_count()))
        munge = self.folder / "munge"
        self.run([munged, "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket",
                  f"--pid-file={munge}/pid", f"--seed-file={munge}/seed"], "munged.log")
        self.wait("munged", lambda: (munge / "socket").exists())
        self.run([control, "-D", "-c"], "slurmctld.out")
        self.run([node, "-D", "-N", host], "slurmd.out")
        self.wait("a node that is idle", self.idle)

    def run(self, words, log):
        with open(self.folder / log, "w", encoding="utf-8") as out:
            self.processes.append(subprocess.Popen(
                words, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=os.environ | self.environment, start_new_session=True))

    def idle(self):
        done = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, check=False,
                              env=os.environ | self.environment)
        return done.returncode == 0 and done.stdout.strip() == "idle"

    def wait(self, what, there, seconds=40):
        end = time.monotonic() + seconds
        while not there():
            ended = [p.args[0] for p in self.processes if p.poll() is not None]
            if ended or time.monotonic() > end:
                raise CannotStart(f"no {what}" + (f"; {ended[0]} ended" if ended else "") + ": " + self.last_words())
            time.sleep(0.2)

    def last_words(self):
        lines = []
        for name in ("munged.log", "slurmctld.out", "slurmctld.log", "slurmd.out", "slurmd.log"):
            file = self.folder / name
            if file.exists():
                lines += [f"{name}: {line}" for line in file.read_text(errors="replace").splitlines()[-3:]]
        return " | ".join(lines)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
