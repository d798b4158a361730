def copy(idata):
    return idata


def transposeNaive(idata, width, height):
    return idata.reshape(height, width).T


transposeNoBankConflicts = transposeNaive


def flipRows(data, width, height):
    return data.reshape(height, width)[:, ::-1]
