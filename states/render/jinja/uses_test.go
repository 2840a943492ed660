package jinja_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/states/render/jinja"
)

func TestUses(t *testing.T) {
	text := `{% set get = salt['pillar.get'] %}
{{ salt.cmd.run('x') | nosuch | upper }}
{% if salt["x"]["y"]() is odd and salt.a['b'] is strange %}
{{ salt['m.f']('k').attr }} {{ salt.get('q.r') }} {{ x.salt['no.no'] }}
{{ 1 | absent }}
{% endif %}`
	got, err := jinja.NewEnv().Uses(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []jinja.Use{
		{Kind: jinja.UseFunction, Name: "pillar.get", Line: 1},
		{Kind: jinja.UseFunction, Name: "cmd.run", Line: 2},
		{Kind: jinja.UseFilter, Name: "nosuch", Line: 2},
		{Kind: jinja.UseFilter, Name: "upper", Line: 2, Known: true},
		{Kind: jinja.UseFunction, Name: "x.y", Line: 3},
		{Kind: jinja.UseTest, Name: "odd", Line: 3, Known: true, Guarded: true},
		{Kind: jinja.UseFunction, Name: "a.b", Line: 3},
		{Kind: jinja.UseTest, Name: "strange", Line: 3, Guarded: true},
		{Kind: jinja.UseFunction, Name: "m.f", Line: 4},
		{Kind: jinja.UseFilter, Name: "absent", Line: 5, Guarded: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := jinja.NewEnv().Uses("a\n{% if %}"); err == nil || err.(*jinja.Error).Line != 2 {
		t.Errorf("syntax: %v", err)
	}
}
