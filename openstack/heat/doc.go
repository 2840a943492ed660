// Package heat makes a minion the guest of an unmodified OpenStack Heat. It replaces os-collect-config, os-refresh-config, heat-config
// and its hooks:
//
//	collectors            engine                         signals
//	cfn, heat, request, → new deployment → its group  →  spool → CFN, TEMP_URL, HEAT, ZAQAR
//	zaqar, local files    (module "heat", a hook)         (on disk until the service has taken it)
//
// [Engine] polls, runs and signals. [Module] is the execution module "heat", which runs the groups; the engine calls it through the
// minion, so that both ways share one implementation. [Collect] is the program os-collect-config.
//
// State on disk, all below Paths.Root and readable by root only:
//
//	/etc/os-collect-config.conf              which collectors there are, as for os-collect-config
//	/var/lib/os-collect-config/*.json        the collected metadata, as os-collect-config leaves it
//	/var/lib/heat-config/deployed/<id>.json  deployments that were begun, as heat-config leaves them; <id>.notify.json is the signal
//	/var/lib/heat-config/brine/run/<id>.json the state of a deployment: running, resume, done
//	/var/lib/heat-config/brine/signals/      signals that were not taken yet
//
// The references are the sources of os-collect-config 14 and heat-agents 13.
package heat
