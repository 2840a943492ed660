motd:
  file.managed:
    - name: {{ pillar['file'] }}
    - contents: {{ pillar['motd'] }}
checked:
  test.nop:
    - require:
      - file: motd
