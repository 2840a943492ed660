// Package minemod is Salt's execution module "mine": leaving data with the master for other minions. Salt's source:
// salt/modules/mine.py.
package minemod
