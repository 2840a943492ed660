// Package matchmod is Salt's execution module "match": telling whether the minion is in a target. Salt's source:
// salt/modules/match.py.
package matchmod
