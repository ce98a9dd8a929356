RunnableConfig = dict
