// Package fileclient is the minion's file client: it brings files of the master's file server, of local file roots or of web
// servers into the minion's cache. It implements modules.Files.
//
// Salt's sources: salt/fileclient.py, salt/utils/url.py.
package fileclient
