// Package file is Salt's state module "file" on everything but Windows: files, directories and links that are as a state wants
// them, and edits of files. Salt's source: salt/states/file.py.
package file
