// Package pillar compiles the pillar of a minion from a top file and pillar files, as Salt's Pillar class does. A
// master does that for every minion that asks; a minion does it itself if it has its own pillar_roots. The package
// knows neither minions nor the network: its user supplies the functions that templates may call.
//
// # Stages
//
//	request            id, grains, environments, pillar={...}
//	   │  prepare                  options of this pillar, roots, the call that templates run functions on
//	   ▼
//	top files          one per environment, rendered, with their includes
//	   │  mergeTops                one list of targets per environment, sorted by order
//	   │  topMatches               the targets that match the minion
//	   ▼
//	SLS names          by environment
//	   │  mergeFiles → renderState → mergeIncludes     merged by mergeOver
//	   ▼
//	files' pillar  ◄── addExternal                     before or after the files (ext_pillar_first)
//	   │  pillar_opts, _errors, the command's pillar
//	   │  decryptKeys
//	   ▼
//	pillar
//
// A file that fails does not fail the pillar: the error is listed under _errors, its text only in the log. Files,
// lists of files and data have limits, since grains that a minion chooses decide what its templates do.
//
// Salt's sources: salt/pillar/__init__.py, salt/utils/dictupdate.py, salt/pillar/cmd_json.py,
// salt/pillar/cmd_yaml.py.
package pillar
