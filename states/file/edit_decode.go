//go:build unix

package file

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var decodeDef = states.Def{Name: "decode", Params: []modules.Param{nameParam, {Name: "encoded_data", Optional: true},
	{Name: "contents_pillar", Optional: true}, {Name: "encoding_type", Default: "base64"}, {Name: "checksum", Default: "md5"}}, Run: decode}

func decode(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	ret := c.Result()
	name, data, pillar := c.Value("name"), c.Value("encoded_data"), c.Value("contents_pillar")
	switch {
	case pytext.Truth(data) && pytext.Truth(pillar):
		return nil, modules.Errorf("Specify only one 'encoded_data' or 'contents_pillar' argument.")
	case pytext.Truth(pillar):
		var err error
		if data, err = j.exec("pillar.get", pillar, false); err != nil {
			return nil, err
		}
		if data == any(false) {
			return nil, modules.Errorf("Pillar data not found.")
		}
	case !pytext.Truth(data):
		return nil, modules.Errorf("Specify either the 'encoded_data' or 'contents_pillar' argument.")
	}
	there, err := j.exec("file.file_exists", name)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(there) {
		content, err := j.exec("hashutil.base64_decodestring", data)
		if err != nil {
			return nil, err
		}
		fresh, err := j.exec("hashutil.digest", content, c.Value("checksum"))
		if err != nil {
			return nil, err
		}
		have, err := j.exec("hashutil.digest_file", name, c.Value("checksum"))
		if err != nil {
			return nil, err
		}
		if fresh == have {
			return ret.As(states.True, "File is in the correct state.")
		}
		ret.Changes["old"], ret.Changes["new"] = have, fresh
	}
	if c.Test() {
		return ret.As(states.None, "File is set to be updated.")
	}
	done, err := j.exec("hashutil.base64_decodefile", data, name)
	if err != nil {
		return nil, err
	}
	if !ret.Changed() {
		sum, err := j.exec("hashutil.digest_file", name, c.Value("checksum"))
		if err != nil {
			return nil, err
		}
		ret.Changes["old"], ret.Changes["new"] = nil, sum
	}
	return ret.As(states.OutcomeOf(pytext.Truth(done)), "File was updated.")
}
