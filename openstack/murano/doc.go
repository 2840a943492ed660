// Package murano is the guest's side of OpenStack Murano: the module "execplan", which runs the scripts of execution plans of the formats
// 2.0 to 2.2 as Murano's agent does (muranoagent/execution_plan_runner.py and its relatives).
//
// It is not the whole agent. The Body of a plan is Python, which is refused: a plan names the scripts to run in Calls. It has no queue and
// no broker, because the minion's journal and the master's orders are durable. A plan must be signed for this minion and be newer
// than the last one that was taken, both of which the agent leaves optional.
package murano
