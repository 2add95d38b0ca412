"""moto's SQS on a port, for any client: `moto_sqs.py PORT`.

`moto_server` finds out which service a call is for by its version 4 signature, so that it takes a
call with version 2 for one of S3. This serves SQS alone.
"""

import sys

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import run_simple

run_simple("127.0.0.1", int(sys.argv[1]), create_backend_app("sqs"), threaded=True)
