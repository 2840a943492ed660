//go:build unix

package file

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/serializers"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// Compatibility.
//
// file.serialize differs: it knows the serializers configparser, json, keyvalue, msgpack, plist, python, yaml and yamlex, with the
// options that matter in files. Files of YAML that it merges with are read by the rules of SLS files.

var serializeDef = states.Def{Name: "serialize", Params: []modules.Param{nameParam, {Name: "dataset", Optional: true},
	{Name: "dataset_pillar", Optional: true}, {Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "mode", Optional: true},
	{Name: "backup", Default: ""}, {Name: "makedirs", Default: false}, {Name: "show_changes", Default: true}, {Name: "create", Default: true},
	{Name: "merge_if_exists", Default: false}, encoding, {Name: "encoding_errors", Default: "strict"}, {Name: "serializer", Optional: true}, {Name: "serializer_opts", Optional: true},
	{Name: "deserializer_opts", Optional: true}, {Name: "check_cmd", Optional: true}, {Name: "tmp_dir", Default: ""}, {Name: "tmp_ext", Default: ""}},
	Kwargs: "kwargs", Run: serialize}

// existing returns the present content of the file, deserialized.
func (j *job) existing(format, name string, opts *pyobj.Dict) (any, error) {
	b, err := os.ReadFile(j.Path(name))
	if err != nil {
		return nil, modules.OSError(err)
	}
	if format != "plist" {
		if _, err := pycodec.UTF8(b); err != nil {
			return nil, err
		}
	}
	return serializers.Deserialize(format, name, b, opts)
}

func serialize(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	switch {
	case name == "":
		return fail(ret, "Must provide name to file.serialize")
	case !c.Bool("create") && !j.isFile(name):
		return ret.As(states.True, "File "+name+" is not present and is not set for creation")
	}
	formatter, format := c.Keywords["formatter"], c.Value("serializer")
	if pytext.Truth(format) && pytext.Truth(formatter) {
		return fail(ret, "Only one of serializer and formatter are allowed")
	}
	kind := "yaml"
	for _, v := range [...]any{formatter, format} {
		if pytext.Truth(v) {
			kind = strings.ToLower(pytext.Str(v))
		}
	}
	data := pyobj.From(j.ordered("dataset"))
	if place := c.Value("dataset_pillar"); pytext.Truth(place) {
		if pyobj.Truth(data) {
			return fail(ret, "Only one of 'dataset' and 'dataset_pillar' is permitted")
		}
		v, err := c.ExecOrdered(ctx, "pillar.get", []any{place}, nil)
		if err != nil {
			return nil, err
		}
		data = pyobj.From(v)
	}
	if data == nil {
		return fail(ret, "Neither 'dataset' nor 'dataset_pillar' was defined")
	}
	opts := &pyobj.Dict{}
	switch kind {
	case "yaml":
		opts = pyobj.NewDict("default_flow_style", false)
		if c.Str("encoding") != "" {
			_ = opts.Set("allow_unicode", true)
		}
	case "json":
		opts = pyobj.NewDict("indent", int64(2), "separators", pyobj.NewList(",", ": "), "sort_keys", true)
	default:
		if writes, _ := serializers.Known(kind); writes {
			break
		}
		return fail(ret, "The "+kind+" serializer could not be found. It either does not exist or its prerequisites are not installed.")
	}
	own, _ := nested.Repack(pyobj.From(j.ordered("serializer_opts")))
	opts.Update(own)
	if c.Bool("merge_if_exists") && j.isFile(name) {
		if _, reads := serializers.Known(kind); !reads {
			return fail(ret, "merge_if_exists is not supported for the "+kind+" serializer")
		}
		own, _ := nested.Repack(pyobj.From(j.ordered("deserializer_opts")))
		have, err := j.existing(kind, name, own)
		if err != nil {
			return fail(ret, "Failed to deserialize existing data: "+states.ErrorText(err))
		}
		if have != nil {
			a, ok1 := have.(*pyobj.Dict)
			b, ok2 := data.(*pyobj.Dict)
			if !ok1 || !ok2 {
				return nil, &modules.TypeError{Msg: nested.ErrUpdate.Error()}
			}
			merged := nested.UpdateObject(pyobj.DeepCopy(a).(*pyobj.Dict), b, false)
			if pyobj.Equal(a, merged) {
				return ret.As(states.True, "The file "+name+" is in the correct state")
			}
			out, err := j.store(ret, name, kind, merged, opts)
			if err == nil && out.Changes != nil {
				out.Changes["diff"] = differences(a, merged)
			}
			return out, err
		}
	} else if !c.Bool("merge_if_exists") && pytext.Truth(c.Value("deserializer_opts")) {
		ret.Warn("The 'deserializer_opts' option is ignored unless merge_if_exists is set to True.")
	}
	return j.store(ret, name, kind, data, opts)
}

// differences returns the changes between two dicts, at any depth (dictdiffer.recursive_diff).
func differences(before, after *pyobj.Dict) map[string]any {
	out := map[string]any{}
	for k, v := range after.All() {
		key := pyobj.Str(k)
		old, there := before.Get(k)
		a, ok1 := old.(*pyobj.Dict)
		b, ok2 := v.(*pyobj.Dict)
		switch {
		case ok1 && ok2:
			if below := differences(a, b); len(below) > 0 {
				out[key] = below
			}
		case !there:
			out[key] = map[string]any{"old": "<_null_>", "new": pyobj.Plain(v)}
		case !pyobj.Equal(old, v):
			out[key] = map[string]any{"old": pyobj.Plain(old), "new": pyobj.Plain(v)}
		}
	}
	return out
}

// store writes the data.
func (j *job) store(ret *states.Result, name, format string, data any, opts *pyobj.Dict) (*states.Result, error) {
	contents, err := serializers.Serialize(format, data, opts)
	if err != nil {
		return nil, raise("salt.serializers.SerializationError", err.Error())
	}
	if text, ok := contents.(string); ok {
		contents = text + "\n" // not so for bytes, which are binary or end as they should
	}
	mode := modules.NormalMode(j.Value("mode"))
	if j.Test() {
		v, err := j.execKw("file.check_managed_changes", nil, map[string]any{"name": name, "source": nil, "source_hash": map[string]any{},
			"source_hash_name": nil, "user": j.Value("user"), "group": j.Value("group"), "mode": mode, "attrs": nil, "template": nil, "context": nil,
			"defaults": nil, "saltenv": j.Saltenv(), "contents": contents, "skip_verify": false})
		if err != nil {
			return nil, err
		}
		if ret.Changes = mapOf(v); len(ret.Changes) == 0 {
			ret.Changes = map[string]any{}
			return ret.As(states.True, "The file "+name+" is in the correct state")
		}
		if !j.Bool("show_changes") {
			ret.Changes["diff"] = "<show_changes=False>"
		}
		return ret.As(states.None, "Dataset will be serialized and stored into "+name)
	}
	put := func(path string) (*states.Result, error) {
		v, err := j.execKw("file.manage_file", nil, map[string]any{"name": path, "sfn": "", "ret": map[string]any{"name": name, "changes": map[string]any{},
			"result": true, "comment": ""}, "source": nil, "source_sum": map[string]any{}, "user": j.Value("user"), "group": j.Value("group"), "mode": mode,
			"attrs": nil, "saltenv": j.Saltenv(), "backup": j.Value("backup"), "makedirs": j.Value("makedirs"), "template": nil,
			"show_changes": j.Value("show_changes"), "encoding": j.Value("encoding"), "encoding_errors": j.Value("encoding_errors"), "contents": contents})
		return resultOf(v), err
	}
	if check := j.Value("check_cmd"); pytext.Truth(check) {
		tmp, err := j.emptyFile(j.Str("tmp_dir"), j.Str("tmp_ext"))
		if err != nil {
			return nil, err
		}
		defer os.Remove(j.Path(tmp))
		if j.isFile(name) {
			if _, err := j.exec("file.copy", name, tmp); err != nil {
				return fail(ret, "Unable to copy file "+name+" to "+tmp+": "+states.ErrorText(err))
			}
		}
		tried, err := put(tmp)
		if err != nil {
			return fail(ret, "Unable to check_cmd file: "+states.ErrorText(err))
		}
		if tried.Changed() {
			wrong, err := j.runCheck(check, tmp)
			if err != nil {
				return fail(ret, "Unable to check_cmd file: "+states.ErrorText(err))
			}
			if wrong != "" {
				ret.SkipWatch = true
				return fail(ret, wrong)
			}
		}
	}
	out, err := put(name)
	if err == nil {
		out.Warnings = ret.Warnings
	}
	return out, err
}
