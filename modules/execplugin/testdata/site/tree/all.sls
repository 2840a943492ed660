milk:
  shop.stocked:
    - count: 4
    - shelf: 2
  lows.tell:
    - extra: more
wrapped:
  filewrap.present:
    - name: {{ pillar['shop']['root'] }}/wrapped.txt
    - contents: text
    - mode: '0640'
bread:
  filewrap.both: []
before:
  lows.before:
    - require:
      - shop: milk
one:
  initing.here: []
two:
  initing.here: []
watcher:
  shop.stocked:
    - count: 1
    - watch:
      - shop: milk
m_changes:
  malformed.changes_list: []
m_comments:
  malformed.comment_list: []
m_warned:
  malformed.warned: []
r_exec:
  raising.execution: []
r_usage:
  raising.usage:
    - needed: x
r_missing:
  raising.usage: []
pillared:
  pillared.applied: []
pillared2:
  pillared.applied:
    - key: shop:root
looped:
  loops.until:
    - want: 4
needing:
  needing.f: []
extra:
  extra.given:
    - args: [1]
    - kwargs: {a: 1}
    - cls: c
    - other: o
single:
  extra.single: []
called:
  calls.ran:
    - function: shop.list
    - args: [3]
    - kwargs: {count: 1}
not_called:
  calls.ran:
    - function: no.such
