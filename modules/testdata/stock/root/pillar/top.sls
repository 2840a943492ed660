base:
  '*': [data]
