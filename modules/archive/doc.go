// Package archive is Salt's execution module "archive": tar, gzip and rar through the programs of these names, zip by itself,
// and what is in an archive. Salt's source: salt/modules/archive.py.
package archive
