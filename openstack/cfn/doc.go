// Package cfn applies AWS::CloudFormation::Init metadata with Salt's states, as heat-cfntools does with its own code:
// packages, sources, groups, users, files, commands and services become one chain of states. It contains the
// execution module "cfn" and the programs cfn-init, cfn-hup, cfn-signal and cfn-get-metadata ([Main]).
//
//	metadata ──Compile──> high data ──state.high──> results ──> Report
//	                          └────────SLS────────> text (cfn.to_sls)
//
// The reference is heat-cfntools 1.4.2 (heat_cfntools/cfntools/cfn_helper.py and its programs). docs/openstack/cfn.md
// describes the intended differences and their reasons. cfn-push-stats is missing: Heat has had no CloudWatch
// interface since its release 10.
//
// The package makes HTTP requests and reads files of the host. A program that includes it needs the execution modules
// state, cmd, file, pkg, service, user and group, and the states of these names.
package cfn
