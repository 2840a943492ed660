//go:build unix

package archive

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "archive".
var Module = &modules.Module{Name: "archive", Doc: "Archives and compressed files.", Funcs: []modules.Def{
	{Name: "cmd_unzip", Doc: `Unpack a zip archive with the program unzip.

zip_file, dest
    The archive and where to.
excludes
    Names or patterns to leave out.
options
    Options of unzip.
template
    Expand the arguments with this template engine first.
runas
    The user who does it.
trim_output
    How many files to return, True for 100.
password
    The password of an encrypted archive.`,
		Example: "salt '*' archive.cmd_unzip /tmp/zipfile.zip /home/strongbad/ excludes=file_1,file_2", Params: []modules.Param{
			{Name: "zip_file"}, {Name: "dest"}, {Name: "excludes", Optional: true}, {Name: "options", Optional: true},
			{Name: "template", Optional: true}, {Name: "runas", Optional: true},
			{Name: "trim_output", Default: false, Type: modules.Bool}, {Name: "password", Optional: true, Secret: true},
		}, Run: cmdUnzip},
	{Name: "cmd_zip", Doc: `Make a zip archive with the program zip.

zip_file
    The archive.
sources
    Files and directories; patterns are expanded.
template, cwd, runas
    As with archive.tar.`,
		Example: "salt '*' archive.cmd_zip /tmp/zipfile.zip /tmp/sourcefile1,/tmp/sourcefile2", Params: []modules.Param{
			{Name: "zip_file"}, {Name: "sources"}, {Name: "template", Optional: true}, {Name: "cwd", Optional: true},
			{Name: "runas", Optional: true},
		}, Run: cmdZip},
	{Name: "gunzip", Doc: "Uncompress a file with the program gunzip.", Example: "salt '*' archive.gunzip /tmp/sourcefile.txt.gz", Params: []modules.Param{
		{Name: "gzipfile"}, {Name: "template", Optional: true}, {Name: "runas", Optional: true},
		{Name: "options", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return zipped(ctx, c, "gunzip", "gzipfile") }},
	{Name: "gzip", Doc: "Compress a file with the program gzip.", Example: "salt '*' archive.gzip /tmp/sourcefile.txt", Params: []modules.Param{
		{Name: "sourcefile"}, {Name: "template", Optional: true}, {Name: "runas", Optional: true},
		{Name: "options", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return zipped(ctx, c, "gzip", "sourcefile") }},
	{Name: "is_encrypted", Doc: `Tell whether a zip archive has encrypted files.

name
    Path or address of the archive.
clean
    Remove it from the cache afterwards.
saltenv, source_hash, use_etag
    The environment of an archive on the master, the hash of one on a web server, and whether to ask that if it has changed.`,
		Example: "salt '*' archive.is_encrypted /path/to/myfile.zip", Params: []modules.Param{
			{Name: "name"}, {Name: "clean", Default: false, Type: modules.Bool},
			{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "source_hash", Optional: true},
			{Name: "use_etag", Default: false, Type: modules.Bool},
		}, Run: isEncrypted},
	{Name: "list", Python: "list_", Doc: `List what is in an archive.

name
    Path or address of the archive.
archive_format
    tar, zip or rar, if the name does not tell.
options
    For tar: the program that uncompresses the archive, if it is not gzip, bzip2 or xz.
strip_components
    Take so many directories off the names.
clean
    Remove it from the cache afterwards.
verbose
    Return directories, files and links apart, and those at the top.
saltenv, source_hash, use_etag
    The environment of an archive on the master, the hash of one on a web server, and whether to ask that if it has changed.`,
		Example: "salt '*' archive.list /path/to/myfile.tar.gz", Params: []modules.Param{
			{Name: "name"}, {Name: "archive_format", Optional: true}, {Name: "options", Optional: true},
			{Name: "strip_components", Optional: true}, {Name: "clean", Default: false, Type: modules.Bool},
			{Name: "verbose", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
			{Name: "source_hash", Optional: true}, {Name: "use_etag", Default: false, Type: modules.Bool},
		}, Run: listArchive},
	{Name: "rar", Doc: "Make a rar archive with the program rar.", Example: "salt '*' archive.rar /tmp/rarfile.rar /tmp/sourcefile1,/tmp/sourcefile2", Params: []modules.Param{
		{Name: "rarfile"}, {Name: "sources"}, {Name: "template", Optional: true}, {Name: "cwd", Optional: true},
		{Name: "runas", Optional: true},
	}, Run: rar},
	{Name: "tar", Doc: `Run the program tar.

options
    Its options.
tarfile
    The archive.
sources
    Files for it; patterns are expanded.
dest
    Where to change to first.
cwd
    The working directory.
template
    Expand the arguments with this template engine first.
runas
    The user who does it.`,
		Example: "salt '*' archive.tar cjvf /tmp/tarfile.tar.bz2 /tmp/file_1,/tmp/file_2", Params: []modules.Param{
			{Name: "options"}, {Name: "tarfile"}, {Name: "sources", Optional: true}, {Name: "dest", Optional: true},
			{Name: "cwd", Optional: true}, {Name: "template", Optional: true}, {Name: "runas", Optional: true},
		}, Run: runTar},
	{Name: "unrar", Doc: "Unpack a rar archive with the program unrar or rar.", Example: "salt '*' archive.unrar /tmp/rarfile.rar /home/strongbad/ excludes=file_1,file_2", Params: []modules.Param{
		{Name: "rarfile"}, {Name: "dest"}, {Name: "excludes", Optional: true}, {Name: "template", Optional: true},
		{Name: "runas", Optional: true}, {Name: "trim_output", Default: false, Type: modules.Bool},
	}, Run: unrar},
	{Name: "unzip", Doc: `Unpack a zip archive. Nothing is written outside of the destination.

zip_file, dest
    The archive and where to.
excludes
    Names to leave out.
options
    Not used.
template, runas, trim_output, password
    As with archive.cmd_unzip.
extract_perms
    Give the files the modes that the archive has for them.`,
		Example: "salt '*' archive.unzip /tmp/zipfile.zip /home/strongbad/ excludes=file_1,file_2", Params: []modules.Param{
			{Name: "zip_file"}, {Name: "dest"}, {Name: "excludes", Optional: true}, {Name: "options", Optional: true},
			{Name: "template", Optional: true}, {Name: "runas", Optional: true},
			{Name: "trim_output", Default: false, Type: modules.Bool}, {Name: "password", Optional: true, Secret: true},
			{Name: "extract_perms", Default: true, Type: modules.Bool},
		}, Run: unzip},
	{Name: "zip", Python: "zip_", Doc: `Make a zip archive.

zip_file
    The archive.
sources
    Files and directories; patterns are expanded. Relative ones need cwd.
template, cwd, runas
    As with archive.tar.
zip64
    Makes no difference: an archive is as large as it must be.`,
		Example: "salt '*' archive.zip /tmp/zipfile.zip /tmp/sourcefile1,/tmp/sourcefile2", Params: []modules.Param{
			{Name: "zip_file"}, {Name: "sources"}, {Name: "template", Optional: true}, {Name: "cwd", Optional: true},
			{Name: "runas", Optional: true}, {Name: "zip64", Default: false, Type: modules.Bool},
		}, Run: zipFiles},
}}
