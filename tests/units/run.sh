#!/bin/bash
# Runs the units of systemd/ under a real systemd, installed from the wheel as docs/install.md says: `make units`, as root.
# Needs systemd-nspawn and debootstrap. usage: run.sh PYTHON FOLDER; the Debian root of FOLDER is made once and kept.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1 root=$2/root
[ "$(id -u)" = 0 ] || { echo "make units: run it as root; it boots a systemd in namespaces of its own" >&2; exit 64; }
for tool in systemd-nspawn debootstrap; do
    command -v "$tool" >/dev/null || { echo "make units: $tool is not installed: apt-get install systemd-container debootstrap" >&2; exit 64; }
done
if [ ! -e "$root/.made" ]; then
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,python3,python3-venv,ca-certificates bookworm "$root"
    touch "$root/.made"
fi
rm -rf "$root"/{etc/recompile-watch,etc/systemd/system/recompile-watch*,opt/recompile-watch,srv/bot,home/bot,var/lib/private/recompile-watch,var/lib/recompile-watch,seen}
mkdir -p "$root/seen/wheels"
"$python" -m build --wheel --outdir "$root/seen/wheels" . >/dev/null
"$python" -m pip download --quiet --dest "$root/seen/wheels" "$root"/seen/wheels/recompile_watch-*.whl
cp tests/units/inside.sh tests/units/receiver.py "$root/seen/"
cat >"$root/etc/systemd/system/seen.service" <<'UNIT'
[Service]
Type=oneshot
ExecStart=/bin/bash /seen/inside.sh
StandardOutput=file:/seen/report
ExecStopPost=/bin/systemctl --no-block poweroff
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../seen.service "$root/etc/systemd/system/multi-user.target.wants/seen.service"
options=(--machine=recompile-watch-units --private-network --console=pipe)
if [ ! -d /run/systemd/system ]; then # no systemd on this machine: a control group of its own, and nobody to register with
    options+=(--register=no --keep-unit)
    for tree in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
        [ -d "$tree" ] && mkdir -p "$tree/recompile-watch-units" && echo $$ >"$tree/recompile-watch-units/cgroup.procs"
    done
fi
timeout 300 systemd-nspawn --quiet --directory="$root" --boot "${options[@]}" </dev/null >"$root/seen/boot" 2>&1 || true
cat "$root/seen/report"
grep -q '^all well$' "$root/seen/report"
