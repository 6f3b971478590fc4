"""Answers to people's questions: the words of a question look at places of a photo, again and again.

config     what shape the network has        batch      questions about photos as it reads them
network    the network that answers          data       folders that training reads
kinds      what a question asks for          judgement  how likely an answer is right, and when to give none
task       how it is trained                 answering  answers in words
"""
