package cpmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "cp": copying files from the master, from web servers and to the master.
var Module = &modules.Module{Name: "cp", Doc: "Copying files from the master, from web servers and to the master.", Funcs: []modules.Def{
	{Name: "cache_dest", Doc: `Tell where cp.cache_file would put a file, whether it is there or not.

url
    The address of the file.
` + saltenvDoc,
		Example: `salt '*' cp.cache_dest https://example.com/bar.rpm
salt '*' cp.cache_dest salt://my/file saltenv=dev`, Params: []modules.Param{{Name: "url"}, saltenvParam}, Run: cacheDest},
	{Name: "cache_dir", Doc: `Bring everything below a directory of the file server into the minion's cache. The answer is the list of cached files.

path
    The directory.
` + saltenvDoc + `include_empty
    Make the empty directories as well.
include_pat, exclude_pat
    Bring only files whose path matches the first and not the second: shell patterns, or regular expressions after "E@", one
    or a list of them.`,
		Example: `salt '*' cp.cache_dir salt://path/to/dir
salt '*' cp.cache_dir salt://path/to/dir include_pat='E@\.py$'`, Params: []modules.Param{
			{Name: "path"}, saltenvParam, {Name: "include_empty", Default: false, Type: modules.Bool},
			{Name: "include_pat", Optional: true}, {Name: "exclude_pat", Optional: true},
		}, Run: cacheDir},
	{Name: "cache_file", Doc: `Bring a file into the minion's cache and return where it is there, or False if the master has no such file.

path
    A salt://, http:// or https:// address, or the path of a file of this host, which is returned as it is.
saltenv
    The environment; the configured one when not given. "?saltenv=NAME" at the end of a salt:// address counts more.
source_hash
    Keep what is cached of a web server if it has this hash.
verify_ssl, use_etag
    Certificates are always verified, and a file of a web server is always fetched.`,
		Example: `salt '*' cp.cache_file salt://path/to/file
salt '*' cp.cache_file salt://path/to/file?saltenv=dev`, Params: []modules.Param{
			{Name: "path"}, saltenvParam, {Name: "source_hash", Optional: true}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
			{Name: "use_etag", Default: false, Type: modules.Bool},
		}, Run: cacheFile},
	{Name: "cache_file_ssh", Python: "cache_file", Doc: "The same as cp.cache_file.", Example: "salt '*' cp.cache_file_ssh salt://path/to/file", Params: []modules.Param{
		{Name: "path"}, saltenvParam, {Name: "source_hash", Optional: true}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
		{Name: "use_etag", Default: false, Type: modules.Bool},
	}, Run: cacheFile},
	{Name: "cache_files", Doc: `Bring several files into the minion's cache. The answer lists where they are, with False for what the master does not have.

paths
    Addresses, a list or separated by commas.
` + saltenvDoc,
		Example: "salt '*' cp.cache_files salt://path/to/file1,salt://path/to/file2", Params: []modules.Param{{Name: "paths"}, saltenvParam}, Run: cacheFiles},
	{Name: "cache_local_file", Doc: "Copy a file of this host into the minion's cache and return where it is there, an empty text if there is no such file.", Example: "salt '*' cp.cache_local_file /etc/hosts", Params: []modules.Param{{Name: "path"}}, Run: cacheLocalFile},
	{Name: "cache_master", Doc: `Bring all files of the file server into the minion's cache.

` + saltenvDoc,
		Example: "salt '*' cp.cache_master", Params: []modules.Param{saltenvParam}, Run: cacheMaster},
	{Name: "envs", Doc: "List the environments of the file server.", Example: "salt '*' cp.envs", Run: envs},
	{Name: "get_dir", Doc: `Copy a directory of the file server with all that is in it. The answer lists what was made.

path
    The directory.
dest
    Where it is put.
` + saltenvDoc + `template
    Expand path and dest with this template engine first.
gzip
    Taken for compatibility.`,
		Example: "salt '*' cp.get_dir salt://path/to/dir/ /minion/dest", Params: []modules.Param{
			{Name: "path"}, {Name: "dest"}, saltenvParam, {Name: "template", Optional: true}, {Name: "gzip", Optional: true},
		}, Kwargs: "kwargs", Run: getDir},
	{Name: "get_file", Doc: `Copy a file of the file server. The answer is where it was put, an empty text if there is no such file, or False if the
directory is missing.

` + pathDoc + `dest
    Where it is put: a path, or a directory.
saltenv
    The environment; the configured one when not given. "?saltenv=NAME" at the end of the address counts more.
makedirs
    Make missing directories.
template
    Expand path and dest with this template engine first.
gzip
    Taken for compatibility.`,
		Example: `salt '*' cp.get_file salt://path/to/file /minion/dest
salt '*' cp.get_file "salt://{{grains.os}}/vimrc" /etc/vimrc template=jinja`, Params: []modules.Param{
			{Name: "path"}, {Name: "dest"}, saltenvParam, {Name: "makedirs", Default: false, Type: modules.Bool},
			{Name: "template", Optional: true}, {Name: "gzip", Optional: true},
		}, Kwargs: "kwargs", Run: getFile},
	{Name: "get_file_str", Doc: `Bring a file into the minion's cache and return its content, or False if the master has no such file.

` + pathDoc + saltenvDoc,
		Example: "salt '*' cp.get_file_str salt://my/file", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: getFileStr},
	{Name: "get_template", Doc: `Expand a file of the file server with a template engine and put the result somewhere. The answer is where it was put, an empty
text if that was not possible.

` + pathDoc + `dest
    Where it is put; the minion's cache if empty.
template
    The template engine.
` + saltenvDoc + `makedirs
    Make missing directories.

Further keyword arguments are names that the template sees.`,
		Example: "salt '*' cp.get_template salt://path/to/template /minion/dest", Params: []modules.Param{
			{Name: "path"}, {Name: "dest"}, {Name: "template", Default: "jinja", Type: modules.String}, saltenvParam,
			{Name: "makedirs", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: getTemplate},
	{Name: "get_url", Doc: `Copy a file from an address. The answer is where it was put, False if the master has no such file.

path
    A salt://, http:// or https:// address, or the path of a file of this host, which is returned as it is.
dest
    Where it is put: a path, or a directory. The minion's cache if empty; None returns the content rather than a path.
` + saltenvDoc + `makedirs
    Make missing directories.
source_hash
    Keep what is cached of a web server if it has this hash.`,
		Example: `salt '*' cp.get_url salt://my/file /tmp/this_file_is_mine
salt '*' cp.get_url https://example.com/ /tmp/index.html`, Params: []modules.Param{
			{Name: "path"}, {Name: "dest", Default: "", Type: modules.String}, saltenvParam,
			{Name: "makedirs", Default: false, Type: modules.Bool}, {Name: "source_hash", Optional: true},
		}, Run: getURL},
	{Name: "hash_file", Doc: `Return the hash of a file of the file server, or of this host: the digest and the name of the hash function.

path
    A salt:// address, or the path of a file of this host.
` + saltenvDoc,
		Example: "salt '*' cp.hash_file salt://path/to/file", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: hashFile},
	{Name: "hash_file_ssh", Python: "hash_file", Doc: "The same as cp.hash_file.", Example: "salt '*' cp.hash_file_ssh salt://path/to/file", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: hashFile},
	{Name: "is_cached", Doc: `Tell where in the minion's cache a file is, with an empty text if it is not there.

` + pathDoc + saltenvDoc,
		Example: "salt '*' cp.is_cached salt://path/to/file", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: isCached},
	{Name: "list_master", Doc: `List the files of the file server.

` + saltenvDoc + `prefix
    List only what begins with this.`,
		Example: "salt '*' cp.list_master", Params: []modules.Param{saltenvParam, {Name: "prefix", Default: "", Type: modules.String}}, Run: listMaster},
	{Name: "list_master_dirs", Doc: `List the directories of the file server.

` + saltenvDoc + `prefix
    List only what begins with this.`,
		Example: "salt '*' cp.list_master_dirs", Params: []modules.Param{saltenvParam, {Name: "prefix", Default: "", Type: modules.String}}, Run: listMasterDirs},
	{Name: "list_master_symlinks", Doc: `List the symbolic links of the file server and where they lead.

` + saltenvDoc + `prefix
    List only what begins with this.`,
		Example: "salt '*' cp.list_master_symlinks", Params: []modules.Param{saltenvParam, {Name: "prefix", Default: "", Type: modules.String}}, Run: listMasterSymlinks},
	{Name: "list_minion", Doc: `List the files in the minion's cache.

` + saltenvDoc,
		Example: "salt '*' cp.list_minion", Params: []modules.Param{saltenvParam}, Run: listMinion},
	{Name: "list_states", Doc: `List the state files of an environment by the names that states are applied by.

` + saltenvDoc,
		Example: "salt '*' cp.list_states", Params: []modules.Param{saltenvParam}, Run: listStates},
	{Name: "push", Doc: `Send a file of this host to the master, which keeps it with what it has cached of the minion. The master must allow it by its
option file_recv. The answer is False if the file cannot be sent.

path
    The file.
keep_symlinks
    Send it under the name given rather than under the one that links lead to.
upload_path
    Send it under this name.
remove_source
    Remove the file afterwards.`,
		Example: `salt '*' cp.push /etc/fstab
salt '*' cp.push /etc/fstab upload_path='/new/path/fstab'`, Params: []modules.Param{
			{Name: "path"}, {Name: "keep_symlinks", Default: false, Type: modules.Bool},
			{Name: "upload_path", Optional: true}, {Name: "remove_source", Default: false, Type: modules.Bool},
		}, Run: push},
	{Name: "push_dir", Doc: `Send the files below a directory of this host to the master, as cp.push does.

path
    The directory.
glob
    Send only files whose name matches this shell pattern.
upload_path
    Send them as if they were below this directory.`,
		Example: "salt '*' cp.push_dir /etc/modprobe.d/ glob='*.conf'", Params: []modules.Param{
			{Name: "path"}, {Name: "glob", Optional: true}, {Name: "upload_path", Optional: true},
		}, Run: pushDir},
	{Name: "recv", Doc: `Write files that the caller brings along, as the salt-cp command does. Not for the command line.

files
    A map from paths to contents.
dest
    Where they are put: a path, or a directory.`,
		Example: "salt '*' cp.recv", Params: []modules.Param{{Name: "files"}, {Name: "dest"}}, Run: recv},
	{Name: "recv_chunked", Doc: `Write a piece of a file that the caller brings along, as the salt-cp command does. Not for the command line.

dest
    Where it is put.
chunk
    The piece in base64; None makes a directory.
append
    Add to the file rather than begin it anew.
compressed
    The piece is compressed with gzip.
mode
    The file's mode, set with its first piece.`,
		Example: "salt '*' cp.recv_chunked", Params: []modules.Param{
			{Name: "dest"}, {Name: "chunk"}, {Name: "append", Default: false, Type: modules.Bool},
			{Name: "compressed", Default: true, Type: modules.Bool}, {Name: "mode", Optional: true},
		}, Run: recvChunked},
	{Name: "stat_file", Doc: `Return the mode of a file of the file server, or of this host.

path
    A salt:// address, or the path of a file of this host.
` + saltenvDoc + `octal
    Return the last four octal digits as text rather than the number.`,
		Example: "salt '*' cp.stat_file salt://path/to/file", Params: []modules.Param{{Name: "path"}, saltenvParam, {Name: "octal", Default: true, Type: modules.Bool}}, Run: statFile},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	pathDoc = `path
    The address of the file.
`
	saltenvDoc = `saltenv
    The environment; the configured one when not given.
`
)

var (
	saltenvParam = modules.Param{Name: "saltenv", Optional: true}
)
