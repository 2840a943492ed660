// Package cfn applies metadata of the kind AWS::CloudFormation::Init, as heat-cfntools does, with Salt's states:
// packages, sources, groups, users, files, commands and services become one chain of states. It holds the execution
// module "cfn" and the programs cfn-init, cfn-hup, cfn-signal and cfn-get-metadata ([Main]).
//
//	metadata ──Compile──> high data ──state.high──> results ──> Report
//	                          └────────SLS────────> text (cfn.to_sls)
//
// The reference is heat-cfntools 1.4.2 (heat_cfntools/cfntools/cfn_helper.py and its programs). Where it differs on
// purpose, and why, is in docs/openstack/cfn.md. cfn-push-stats is absent: Heat has no CloudWatch interface since its
// release 10.
//
// The package opens HTTP connections and reads files of the host. It needs the execution modules state, cmd, file, pkg,
// service, user and group, and the states of these names, in the program that it is part of.
package cfn
