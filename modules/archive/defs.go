//go:build unix

package archive

import (
	"context"
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "archive".
var Module = &modules.Module{Name: "archive", Doc: "Archives and compressed files.", Docs: &docs, Funcs: []modules.Def{
	{Name: "cmd_unzip", Params: []modules.Param{
		{Name: "zip_file"}, {Name: "dest"}, {Name: "excludes", Optional: true}, {Name: "options", Optional: true},
		{Name: "template", Optional: true}, {Name: "runas", Optional: true},
		{Name: "trim_output", Default: false, Type: modules.Bool}, {Name: "password", Optional: true, Secret: true},
	}, Run: cmdUnzip},
	{Name: "cmd_zip", Params: []modules.Param{
		{Name: "zip_file"}, {Name: "sources"}, {Name: "template", Optional: true}, {Name: "cwd", Optional: true},
		{Name: "runas", Optional: true},
	}, Run: cmdZip},
	{Name: "gunzip", Params: []modules.Param{
		{Name: "gzipfile"}, {Name: "template", Optional: true}, {Name: "runas", Optional: true},
		{Name: "options", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return zipped(ctx, c, "gunzip", "gzipfile") }},
	{Name: "gzip", Params: []modules.Param{
		{Name: "sourcefile"}, {Name: "template", Optional: true}, {Name: "runas", Optional: true},
		{Name: "options", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) { return zipped(ctx, c, "gzip", "sourcefile") }},
	{Name: "is_encrypted", Params: []modules.Param{
		{Name: "name"}, {Name: "clean", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "source_hash", Optional: true},
		{Name: "use_etag", Default: false, Type: modules.Bool},
	}, Run: isEncrypted},
	{Name: "list", Python: "list_",
		Params: []modules.Param{
			{Name: "name"}, {Name: "archive_format", Optional: true}, {Name: "options", Optional: true},
			{Name: "strip_components", Optional: true}, {Name: "clean", Default: false, Type: modules.Bool},
			{Name: "verbose", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
			{Name: "source_hash", Optional: true}, {Name: "use_etag", Default: false, Type: modules.Bool},
		}, Run: listArchive},
	{Name: "rar", Params: []modules.Param{
		{Name: "rarfile"}, {Name: "sources"}, {Name: "template", Optional: true}, {Name: "cwd", Optional: true},
		{Name: "runas", Optional: true},
	}, Run: rar},
	{Name: "tar", Params: []modules.Param{
		{Name: "options"}, {Name: "tarfile"}, {Name: "sources", Optional: true}, {Name: "dest", Optional: true},
		{Name: "cwd", Optional: true}, {Name: "template", Optional: true}, {Name: "runas", Optional: true},
	}, Run: runTar},
	{Name: "unrar", Params: []modules.Param{
		{Name: "rarfile"}, {Name: "dest"}, {Name: "excludes", Optional: true}, {Name: "template", Optional: true},
		{Name: "runas", Optional: true}, {Name: "trim_output", Default: false, Type: modules.Bool},
	}, Run: unrar},
	{Name: "unzip", Params: []modules.Param{
		{Name: "zip_file"}, {Name: "dest"}, {Name: "excludes", Optional: true}, {Name: "options", Optional: true},
		{Name: "template", Optional: true}, {Name: "runas", Optional: true},
		{Name: "trim_output", Default: false, Type: modules.Bool}, {Name: "password", Optional: true, Secret: true},
		{Name: "extract_perms", Default: true, Type: modules.Bool},
	}, Run: unzip},
	{Name: "zip", Python: "zip_",
		Params: []modules.Param{
			{Name: "zip_file"}, {Name: "sources"}, {Name: "template", Optional: true}, {Name: "cwd", Optional: true},
			{Name: "runas", Optional: true}, {Name: "zip64", Default: false, Type: modules.Bool},
		}, Run: zipFiles},
}}
