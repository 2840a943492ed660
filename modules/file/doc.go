// Package file is Salt's execution module "file" on everything but Windows: looking at files, changing their content, their
// owners and modes, and managing them as the state of the same name wants. Salt's sources: salt/modules/file.py,
// salt/utils/files.py, salt/utils/find.py.
//
// Text that matters to users is Salt's: return values, errors, diffs, names of backups. Where Salt writes a file in steps, this
// package puts the finished file in place at once, with the owner and mode it had, unless the file must stay the same one.
package file

// file.find differs: options take effect in alphabetical order, since their order is not known.
// file.makedirs differs: a mode that is none is refused before a directory is made.
// file.manage_file differs: content that does not fit the encoding is refused before anything is made.
// file.manage_file differs: content given by the caller never lies in a temporary directory.
// file.manage_file differs: a file of the master whose content is in place is not fetched into the cache.
// file.manage_file differs: with ignore_ordering and its like, new files are changes that other states see.
// file.manage_file differs: new_file_diff shows nothing where show_changes is off.
// file.psed differs: a copy is only made once the replacement is known to work.
// file.replace differs: not_found_content may be empty, where stock fails.
// file.replace differs: a file stays as it was if the pattern would cut characters of UTF-8 apart, where stock empties it; files that are
// not UTF-8 can be edited without an encoding.
// file.source_list differs: without the http module an address of a web server counts if it can be fetched.
// file.statvfs differs: on other systems than Linux, macOS and FreeBSD it fails.
