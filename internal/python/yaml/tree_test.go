package yaml

import "testing"

func TestTree(t *testing.T) {
	n, err := Tree([]byte("a:\n  b: &x [1, two]\n  a: !!str 3\nb:\nb: {c: *x}\n'q r':\n- - deep\n"), "x")
	if err != nil {
		t.Fatal(err)
	}
	if l := n.Get("a").Get("b"); l.Line != 2 || len(l.Items) != 2 || l.Items[1].Text != "two" {
		t.Errorf("b: %+v", l)
	}
	if l := n.Get("b"); l.Line != 5 || !l.Get("c").Scalar {
		t.Errorf("the last b: %+v", l)
	}
	if d := n.Get("q r").Items[0].Items[0]; d.Text != "deep" || d.Line != 7 || !d.Scalar {
		t.Errorf("deep: %+v", d)
	}
	if n.Get("nosuch").Get("below") != nil {
		t.Error("a key that is missing has a value")
	}
	if n, err := Tree(nil, "x"); n != nil || err != nil {
		t.Errorf("an empty document: %v %v", n, err)
	}
	if _, err := Tree([]byte("a: [\n"), "x"); err == nil {
		t.Error("half a document has a tree")
	}
}
