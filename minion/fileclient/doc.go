// Package fileclient is the minion's file client. It copies files of the master's file server, of local file roots
// or of web servers into the minion's cache, and implements modules.Files.
//
//	salt://a/b?saltenv=dev     cachedir/files/dev/a/b
//	https://host/x?y           cachedir/extrn_files/base/host/x-y     entity tag in etags/…
//
// A download runs in these steps. If the cached file has the right hash, which is the usual case, the download ends
// at once:
//
//	_file_hash ─▶ equal to the cached file? ─▶ done
//	    │ no
//	    ▼
//	_serve_file, four chunks in flight ─▶ temporary file ─▶ hash equal? ─▶ rename
//	                                                          │ no: up to three attempts
//
// The path of a file comes from the network, so every name is checked before it is used as a path, and files are
// created through a handle of the cache directory.
//
// Salt's sources: salt/fileclient.py, salt/utils/url.py.
package fileclient
