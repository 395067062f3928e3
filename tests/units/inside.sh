# What is tried inside of the booted system: docs/install.md word for word, and then everything that can happen to a unit.
rw=/opt/recompile-watch/bin/recompile-watch config=/etc/recompile-watch/config.toml unit=recompile-watch failures=0
line='W1121 09:08:09.123456 4242 torch/_dynamo/convert_frame.py:1016] [3/8]'

within() { for _ in $(seq "$1"); do eval "$2" >/dev/null 2>&1 && return 0; sleep 0.5; done; return 1; }
is() { if within "${3:-20}" "$2"; then echo "ok    $1"; else echo "FAIL  $1"; journalctl -u $unit -o cat | tail -n 15; failures=$((failures + 1)); fi; }
main() { systemctl show -p MainPID --value $unit; }
hit() { printf "$line torch._dynamo hit config.recompile_limit (8)\n$line    function: '$1' (/srv/bot/model.py:12)\n$line    last reason: 3/7: x\n"; }
as_bot() { runuser -u bot -- sh -c "umask 027; cat >> $1"; }

python3 -m venv /opt/recompile-watch
/opt/recompile-watch/bin/pip install --quiet --no-index --find-links /seen/wheels recompile-watch
id bot >/dev/null 2>&1 || useradd --create-home bot
install -d -o bot -g bot -m 0750 /srv/bot /home/bot /home/bot/logs
install -d /etc/recompile-watch; install -d -m 0700 /etc/recompile-watch/credentials
(umask 077; echo json://127.0.0.1:8080/alerts >/etc/recompile-watch/credentials/notify.ops)
cat >$config <<'TOML'
[[source]]
name = "bot"
path = "/srv/bot/*.log"
timezone = "UTC"
[[source]]
name = "home"
path = "/home/bot/logs/*.log"
timezone = "UTC"
[[source]]
name = "journal"
journal = "bot.service"
[[receiver]]
name = "ops"
credential = "notify.ops"
warning_wait = "1s"
burst = 1000
at_once = 1000
same_kind_wait = "1s"
TOML
export CREDENTIALS_DIRECTORY=/etc/recompile-watch/credentials
systemd-run --quiet --unit=receiver python3 /seen/receiver.py
is "the configuration is good by hand" "$rw watch --check --config $config"
is "a test message arrives" "$rw notify test --config $config"
unset CREDENTIALS_DIRECTORY
cp /opt/recompile-watch/share/recompile-watch/systemd/* /etc/systemd/system/
install -d /etc/systemd/system/$unit.service.d /etc/systemd/system/$unit-.service.d
cat >/etc/systemd/system/$unit.service.d/override.conf <<'INI'
[Service]
SupplementaryGroups=bot
BindReadOnlyPaths=/home/bot/logs
LoadCredential=notify.ops:/etc/recompile-watch/credentials/notify.ops
INI
ln -sf ../$unit.service.d/override.conf /etc/systemd/system/$unit-.service.d/
printf '[Service]\nWatchdogSec=4\n' >/etc/systemd/system/$unit.service.d/short-watchdog.conf
printf '[Service]\nUser=bot\nExecStart=/bin/cat /seen/hit\nStandardError=journal\n' >/etc/systemd/system/bot.service
hit unit >/seen/hit
echo begins | as_bot /srv/bot/bot.log; echo begins | as_bot /home/bot/logs/bot.log
systemctl daemon-reload
is "it starts and says READY" "systemctl enable --now $unit" 1
is "a log of another user's group is read and told" "hit group | as_bot /srv/bot/bot.log; within 20 'grep -q group.hit /seen/received'" 1
is "a log below /home is read" "hit home | as_bot /home/bot/logs/bot.log; within 20 'grep -q home.hit /seen/received'" 1
is "the journal of a unit is read" "systemctl start bot; within 20 'grep -q unit.hit /seen/received'" 1
is "root asks without naming a folder" "$rw incidents list | grep -q 'group hit'"
is "root acknowledges" "$rw incidents ack \$($rw incidents list --json | grep -o '\"id\": *\"[0-9a-f]*' | head -1 | grep -o '[0-9a-f]*\$') --until 1h"
is "another user is told who may ask" "runuser -u bot -- $rw status 2>&1 | grep -q 'ask as the user of the watch or as root'"
is "the secret is in neither environment nor arguments" "! grep -aq alerts /proc/\$(main)/environ /proc/\$(main)/cmdline"
is "it has no privilege and cannot write a log" "grep -q 'CapEff:.0*\$' /proc/\$(main)/status && ! nsenter -t \$(main) -m touch /srv/bot/bot.log"
is "its memory is below 90 MB" "[ \$(grep VmHWM /proc/\$(main)/status | grep -o '[0-9]*') -lt 92160 ]"
before=$(main); kill -9 "$before"; hit killed | as_bot /srv/bot/bot.log
is "killed, it comes back and has missed nothing" "grep -q killed.hit /seen/received" 40
before=$(main); kill -STOP "$before"
is "hung, the watchdog ends it and it comes back" "[ \$(main) != $before ] && [ \$(main) != 0 ] && systemctl is-active $unit" 60
is "a good reload is taken" "systemctl reload $unit && journalctl -u $unit -o cat | grep -q config_reloaded && systemctl is-active $unit"
cp $config /seen/good; echo nonsense = 1 >>$config; systemctl reload $unit
is "a bad reload is told, stands in the status, and the watch goes on" \
    "systemctl status $unit | grep -q 'configuration is bad' && grep -q 'old one stays' /seen/received && systemctl is-active $unit"
systemctl restart $unit
is "a bad configuration is given up at once" "systemctl is-failed $unit" 4
is "and the failure unit tells of it" "grep -q 'does not run any more.*nonsense' /seen/received"
cp /seen/good $config; systemctl reset-failed; systemctl start $unit
is "the digest is sent, and the timer waits" "systemctl start $unit-digest && systemctl enable --now $unit-digest.timer && grep -q Digest /seen/received"
systemctl stop $unit; journalctl --rotate; journalctl --vacuum-time=1s >/dev/null 2>&1; systemctl start $unit; systemctl restart bot
is "a vacuumed journal is a gap" "$rw incidents list | grep -q 'no longer has the last entry'" 40
started=$(date +%s); systemctl stop $unit
is "it stops within five seconds, and well" "[ $(($(date +%s) - started)) -le 5 ] && systemctl show -p Result $unit | grep -q success" 1
is "its own log has no traceback, and priorities" "! journalctl -u $unit | grep -q Traceback && journalctl -u $unit -p info -o cat | grep -q watch_started" 1
[ "$failures" = 0 ] && echo "all well"
