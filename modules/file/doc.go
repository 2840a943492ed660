// Package file is Salt's execution module "file" on everything but Windows: looking at files, changing their content, their
// owners and modes, and managing them as the state of the same name wants. Salt's sources: salt/modules/file.py,
// salt/utils/files.py, salt/utils/find.py.
//
// Text that matters to users is Salt's: return values, errors, diffs, names of backups. Where Salt writes a file in steps, this
// package puts the finished file in place at once, with the owner and mode it had, unless the file must stay the same one.
package file
