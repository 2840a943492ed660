// Package heat makes a minion the guest agent of an unmodified OpenStack Heat. It replaces os-collect-config,
// os-refresh-config, heat-config and its hooks:
//
//	collectors            engine                         signals
//	cfn, heat, request, → new deployment → its group  →  spool → CFN, TEMP_URL, HEAT, ZAQAR
//	zaqar, local files    (module "heat", a hook)         (on disk until the service has accepted it)
//
// [Engine] polls, runs and signals. [Module] is the execution module "heat", which runs the groups. The engine calls
// it through the minion, so that there is one implementation. [Collect] is the program os-collect-config.
//
// State on disk, below Paths.Root and readable only by root:
//
//	/etc/os-collect-config.conf              configuration of the collectors, as for os-collect-config
//	/var/lib/os-collect-config/*.json        collected metadata, as os-collect-config stores it
//	/var/lib/heat-config/deployed/<id>.json  started deployments, as heat-config stores them; <id>.notify.json is the signal
//	/var/lib/heat-config/brine/run/<id>.json state of a deployment: running, resume, done
//	/var/lib/heat-config/brine/signals/      signals that were not accepted yet
//
// The references are the sources of os-collect-config 14 and heat-agents 13.
package heat
