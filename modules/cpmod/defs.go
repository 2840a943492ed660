package cpmod

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "cp": copying files from the master, from web servers and to the master.
var Module = &modules.Module{Name: "cp", Doc: "Copying files from the master, from web servers and to the master.", Docs: &docs, Funcs: []modules.Def{
	{Name: "cache_dest", Params: []modules.Param{{Name: "url"}, saltenvParam}, Run: cacheDest},
	{Name: "cache_dir", Params: []modules.Param{
		{Name: "path"}, saltenvParam, {Name: "include_empty", Default: false, Type: modules.Bool},
		{Name: "include_pat", Optional: true}, {Name: "exclude_pat", Optional: true},
	}, Run: cacheDir},
	{Name: "cache_file", Params: []modules.Param{
		{Name: "path"}, saltenvParam, {Name: "source_hash", Optional: true}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
		{Name: "use_etag", Default: false, Type: modules.Bool},
	}, Run: cacheFile},
	{Name: "cache_file_ssh", Python: "cache_file", Params: []modules.Param{
		{Name: "path"}, saltenvParam, {Name: "source_hash", Optional: true}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
		{Name: "use_etag", Default: false, Type: modules.Bool},
	}, Run: cacheFile},
	{Name: "cache_files", Params: []modules.Param{{Name: "paths"}, saltenvParam}, Run: cacheFiles},
	{Name: "cache_local_file", Params: []modules.Param{{Name: "path"}}, Run: cacheLocalFile},
	{Name: "cache_master", Params: []modules.Param{saltenvParam}, Run: cacheMaster},
	{Name: "envs", Run: envs},
	{Name: "get_dir", Params: []modules.Param{
		{Name: "path"}, {Name: "dest"}, saltenvParam, {Name: "template", Optional: true}, {Name: "gzip", Optional: true},
	}, Kwargs: "kwargs", Run: getDir},
	{Name: "get_file", Params: []modules.Param{
		{Name: "path"}, {Name: "dest"}, saltenvParam, {Name: "makedirs", Default: false, Type: modules.Bool},
		{Name: "template", Optional: true}, {Name: "gzip", Optional: true},
	}, Kwargs: "kwargs", Run: getFile},
	{Name: "get_file_str", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: getFileStr},
	{Name: "get_template", Params: []modules.Param{
		{Name: "path"}, {Name: "dest"}, {Name: "template", Default: "jinja", Type: modules.String}, saltenvParam,
		{Name: "makedirs", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Run: getTemplate},
	{Name: "get_url", Params: []modules.Param{
		{Name: "path"}, {Name: "dest", Default: "", Type: modules.String}, saltenvParam,
		{Name: "makedirs", Default: false, Type: modules.Bool}, {Name: "source_hash", Optional: true},
	}, Run: getURL},
	{Name: "hash_file", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: hashFile},
	{Name: "hash_file_ssh", Python: "hash_file", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: hashFile},
	{Name: "is_cached", Params: []modules.Param{{Name: "path"}, saltenvParam}, Run: isCached},
	{Name: "list_master",
		Params: []modules.Param{saltenvParam, {Name: "prefix", Default: "", Type: modules.String}}, Run: listMaster},
	{Name: "list_master_dirs",
		Params: []modules.Param{saltenvParam, {Name: "prefix", Default: "", Type: modules.String}}, Run: listMasterDirs},
	{Name: "list_master_symlinks",
		Params: []modules.Param{saltenvParam, {Name: "prefix", Default: "", Type: modules.String}}, Run: listMasterSymlinks},
	{Name: "list_minion", Params: []modules.Param{saltenvParam}, Run: listMinion},
	{Name: "list_states", Params: []modules.Param{saltenvParam}, Run: listStates},
	{Name: "push", Params: []modules.Param{
		{Name: "path"}, {Name: "keep_symlinks", Default: false, Type: modules.Bool},
		{Name: "upload_path", Optional: true}, {Name: "remove_source", Default: false, Type: modules.Bool},
	}, Run: push},
	{Name: "push_dir", Params: []modules.Param{
		{Name: "path"}, {Name: "glob", Optional: true}, {Name: "upload_path", Optional: true},
	}, Run: pushDir},
	{Name: "recv", Params: []modules.Param{{Name: "files"}, {Name: "dest"}}, Run: recv},
	{Name: "recv_chunked", Params: []modules.Param{
		{Name: "dest"}, {Name: "chunk"}, {Name: "append", Default: false, Type: modules.Bool},
		{Name: "compressed", Default: true, Type: modules.Bool}, {Name: "mode", Optional: true},
	}, Run: recvChunked},
	{Name: "stat_file",
		Params: []modules.Param{{Name: "path"}, saltenvParam, {Name: "octal", Default: true, Type: modules.Bool}}, Run: statFile},
}}

var (
	saltenvParam = modules.Param{Name: "saltenv", Optional: true}
)
