import pytest
from tests.run.cases import quick
from tests.run.served import serving


@pytest.fixture
def study(tmp_path):
    return quick(storage=f"sqlite:///{tmp_path / 'a.db'}")


@pytest.fixture
def server(study):
    with serving(study.database) as url:
        yield url
