// Package murano is the guest agent's side of OpenStack Murano: the module "execplan", which runs the scripts of
// execution plans in the formats 2.0 to 2.2 as Murano's agent does (muranoagent/execution_plan_runner.py and related
// files).
//
// It is not a complete agent. The Body of a plan is Python, which is refused; instead, the plan lists the scripts to
// run in Calls. There is no queue and no broker, because the minion's journal and the master's orders are durable. A
// plan must be signed for this minion and be newer than the last accepted plan; Murano's agent requires neither by
// default.
package murano
