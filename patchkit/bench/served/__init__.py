"""The engine ``openai``: a server that speaks OpenAI's protocol, started and measured from outside."""
