// Package archive is Salt's execution module "archive": it runs the programs tar, gzip and rar, handles zip itself,
// and lists the content of archives. Salt's source: salt/modules/archive.py.
package archive

// archive.unzip differs: nothing is written outside of the destination, neither by names nor through links.
// archive.unzip differs: with runas the program unzip does the work.
// archive.zip differs: an archive that cannot be made is an error, where stock forgets its exception; with runas the program zip does the work.
