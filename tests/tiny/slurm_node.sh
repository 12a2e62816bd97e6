#!/usr/bin/env bash
# A SLURM of one node on this machine: slurm_node.sh start|stop FOLDER. Needs Debian's slurm-wlm and munge, and root; no systemd.
# Clients find it by SLURM_CONF=FOLDER/slurm.conf. The plugins of cgroups are left out: they want systemd.
set -euo pipefail
what=$1
folder=$(realpath -m "$2")

start() {
    mkdir -p "$folder"/{state,spool,logs}
    host=$(hostname -s)
    dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none
    chmod 400 "$folder/munge.key"
    cat > "$folder/slurm.conf" <<EOF
ClusterName=tiny
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldPort=${SLURM_PORT:-16817}
SlurmdPort=$((${SLURM_PORT:-16817} + 1))
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/logs/slurmctld
SlurmdLogFile=$folder/logs/slurmd
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=86400
SchedulerParameters=sched_interval=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc --all) RealMemory=1000 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
    export SLURM_CONF="$folder/slurm.conf"
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/logs/munged" --seed-file="$folder/munged.seed" --num-threads=1
    slurmctld
    slurmd
    for _ in $(seq 60); do
        if sinfo --noheader --format=%t 2> "$folder/logs/sinfo" | grep -q idle; then return; fi
        sleep 1
    done
    echo "no idle node after a minute; see $folder/logs" >&2
    return 1
}

stop() {
    for daemon in slurmd slurmctld munged; do
        if [ -f "$folder/$daemon.pid" ]; then kill "$(cat "$folder/$daemon.pid")" || true; fi
    done
}

"$what"
